//! Frames of the DCP protocol: parse, emit, trim, bounce.

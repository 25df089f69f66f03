//! The sans-IO DCP endpoint: queue pairs, tracking, retransmission, timers.

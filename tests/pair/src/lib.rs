//! Two endpoints, a scripted link and virtual time: the test harness of the core.

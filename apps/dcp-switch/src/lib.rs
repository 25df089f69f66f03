//! The trimming switch as a program.
//!
//! From the outside in: [`app`] reads the command line and the file into [`settings`], which become a [`plan`] in which
//! every value is in range; [`ports`] opens the devices and keeps their links; [`run`] moves frames until a signal comes;
//! [`report`] tells what happened, as a [`table`], as [`json`] or by [`telemetry`].

#![forbid(unsafe_code)]

pub mod app;
pub mod capture;
pub mod failure;
pub mod file;
pub mod json;
pub mod plan;
pub mod ports;
pub mod report;
pub mod run;
pub mod settings;
pub mod signals;
pub mod table;
pub mod telemetry;
pub mod values;

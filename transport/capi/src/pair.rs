//! Two devices in one process.

use std::ffi::c_int;

use dcp::device::{DeviceUri, NetDevice};

use crate::context::{Context, Settings, dcp_context, dcp_options, device_failure};
use crate::failure::{Failure, entry};
use crate::handle::give;
use crate::process;
use crate::sized::{self, NULL, Sized32};

/// Opens two devices in this process that are joined: what one sends, the other receives. For tests and first steps; it
/// needs no rights. Options may be NULL; both must ask for the same workers and mtu.
///
/// Fails with EINVAL, ENODEV, ENOMEM, EALREADY.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dcp_open_pair(
    first_options: *const dcp_options,
    second_options: *const dcp_options,
    first: *mut *mut dcp_context,
    second: *mut *mut dcp_context,
) -> c_int {
    entry(|| {
        if first.is_null() || second.is_null() {
            return Err(NULL);
        }
        // SAFETY: the caller passes NULL or a structure that begins with its size.
        let mut ours = unsafe { options(first_options) }?;
        // SAFETY: as above.
        let mut theirs = unsafe { options(second_options) }?;
        if (ours.workers.max(1), ours.mtu) != (theirs.workers.max(1), theirs.mtu) {
            return Err(Failure::fixed(libc::EINVAL, "the two ends of a pair differ in workers or mtu"));
        }
        for (side, last) in [(&mut ours, 1), (&mut theirs, 2)] {
            if side.ip == [0; 4] {
                side.ip = [10, 0, 0, last];
            }
        }
        let (ours, theirs) = (Settings::of(&ours)?, Settings::of(&theirs)?);
        let eal = process::eal(ours.eal, &[DeviceUri::Loop])?;
        let ends = NetDevice::open_loop(&eal, &ours.net).map_err(|error| device_failure(&error))?;
        let a = Context::end_of_pair(&eal, ends.0, ours.verbs)?;
        let b = Context::end_of_pair(&eal, ends.1, theirs.verbs)?;
        // SAFETY: not NULL, and the caller's to write.
        unsafe { first.write(give(a)) };
        // SAFETY: as above.
        unsafe { second.write(give(b)) };
        Ok(0)
    })
}

/// # Safety
/// NULL, or a structure that begins with its size.
unsafe fn options(pointer: *const dcp_options) -> Result<dcp_options, Failure> {
    if pointer.is_null() {
        return Ok(dcp_options::ZERO);
    }
    // SAFETY: as the caller says.
    unsafe { sized::read(pointer) }
}

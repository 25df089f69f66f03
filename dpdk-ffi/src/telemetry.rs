//! Commands on DPDK's telemetry socket, as `dpdk-telemetry.py` speaks to it.
//!
//! DPDK calls a bare C function with the command's name, on a thread of its own. One function serves all commands here:
//! it finds the handler by name, and turns the handler's [`Answer`] into DPDK's form. The table of handlers is locked
//! while one is looked up, never while it runs, and never by the data path.

use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dpdk_sys::rte_tel_data;

use crate::errno::Errno;

/// What a command answers. What is longer than DPDK's limits is cut: it still makes valid JSON.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// `null`: there is no such thing.
    Nothing,
    /// A list of at most [`LIST_MAX`] texts.
    Texts(Vec<String>),
    /// A list of at most [`LIST_MAX`] numbers.
    Numbers(Vec<u64>),
    /// An object of at most [`FIELDS_MAX`] fields. Names are letters, digits, `_` and `/`.
    Fields(Vec<(&'static str, Field)>),
}

/// The value of a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Field {
    /// A number.
    Number(u64),
    /// A text of at most 127 bytes.
    Text(String),
}

/// Entries of a list.
pub const LIST_MAX: usize = dpdk_sys::RTE_TEL_MAX_ARRAY_ENTRIES as usize;
/// Fields of an object.
pub const FIELDS_MAX: usize = dpdk_sys::RTE_TEL_MAX_DICT_ENTRIES as usize;
/// Bytes of a text, without the zero behind it.
const TEXT_MAX: usize = dpdk_sys::RTE_TEL_MAX_STRING_LEN as usize - 1;

/// Answers a command, given what follows the comma behind its name. It runs on DPDK's telemetry thread.
pub type Handler = dyn Fn(&str) -> Answer + Send + Sync;

/// Why a command was not registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TelemetryError {
    /// Its name.
    pub command: &'static str,
    /// DPDK's reason.
    pub errno: Errno,
}

impl fmt::Display for TelemetryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DPDK does not take the telemetry command {}: {}", self.command, self.errno)
    }
}

impl std::error::Error for TelemetryError {}

struct Command {
    name: &'static str,
    handler: Arc<Handler>,
}

/// A process has few: they are searched in turn.
static COMMANDS: Mutex<Vec<Command>> = Mutex::new(Vec::new());

fn commands() -> MutexGuard<'static, Vec<Command>> {
    COMMANDS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has `handler` answer `command`, such as `/dcp/qp`, from now on; `help` is what `/help,/dcp/qp` says. A second
/// registration takes the place of the first. Before or after the EAL started, and also if it has no socket.
///
/// # Errors
/// [`TelemetryError`], for a name that does not begin with `/` or is too long.
pub fn register(
    command: &'static str,
    help: &'static str,
    handler: impl Fn(&str) -> Answer + Send + Sync + 'static,
) -> Result<(), TelemetryError> {
    let mut commands = commands();
    let handler: Arc<Handler> = Arc::new(handler);
    if let Some(known) = commands.iter_mut().find(|known| known.name == command) {
        known.handler = handler;
        return Ok(());
    }
    let refused = |code| TelemetryError { command, errno: Errno::from_return(code) };
    let (Ok(name), Ok(help)) = (CString::new(command), CString::new(help)) else {
        return Err(refused(-libc::EINVAL));
    };
    // SAFETY: both strings are copied, and the function needs nothing but its arguments.
    let code = unsafe { dpdk_sys::rte_telemetry_register_cmd(name.as_ptr(), Some(answer), help.as_ptr()) };
    if code != 0 {
        return Err(refused(code));
    }
    commands.push(Command { name: command, handler });
    Ok(())
}

/// Runs on the telemetry thread. Nothing unwinds into DPDK, which answers `null` after a number below zero.
extern "C" fn answer(command: *const c_char, arguments: *const c_char, data: *mut rte_tel_data) -> c_int {
    let run = || {
        // SAFETY: DPDK passes a string that lives until we return.
        let command = unsafe { text(command) };
        // SAFETY: as above, or null for none.
        let arguments = unsafe { text(arguments) };
        let handler = commands().iter().find(|known| known.name == command)?.handler.clone();
        Some(handler(&arguments))
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        // SAFETY: DPDK's own, empty until we fill it, and alive until we return.
        Ok(Some(answer)) => unsafe { write(data, &answer) },
        Ok(None) => -1,
        Err(panic) => forget(panic),
    }
}

/// What a panic carries may panic when dropped.
#[cold]
fn forget(panic: Box<dyn Any + Send>) -> c_int {
    std::mem::forget(panic);
    -1
}

/// # Safety
/// A string, or null.
unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// # Safety
/// `data` is DPDK's answer, in which nothing was begun.
unsafe fn write(data: *mut rte_tel_data, answer: &Answer) -> c_int {
    match answer {
        Answer::Nothing => -1,
        // SAFETY: as the caller says, as in the other arms.
        Answer::Texts(texts) => unsafe { write_texts(data, texts) },
        // SAFETY: as above.
        Answer::Numbers(numbers) => unsafe { write_numbers(data, numbers) },
        // SAFETY: as above.
        Answer::Fields(fields) => unsafe { write_fields(data, fields) },
    }
}

/// # Safety
/// As [`write`].
unsafe fn write_texts(data: *mut rte_tel_data, texts: &[String]) -> c_int {
    // SAFETY: as the caller says.
    let mut code = unsafe { dpdk_sys::dcpshim_tel_start_texts(data) };
    for text in texts.iter().take(LIST_MAX) {
        let text = printable(text);
        // SAFETY: the list was begun; the string is copied.
        code |= unsafe { dpdk_sys::rte_tel_data_add_array_string(data, text.as_ptr()) };
    }
    code
}

/// # Safety
/// As [`write`].
unsafe fn write_numbers(data: *mut rte_tel_data, numbers: &[u64]) -> c_int {
    // SAFETY: as the caller says.
    let mut code = unsafe { dpdk_sys::dcpshim_tel_start_numbers(data) };
    for &number in numbers.iter().take(LIST_MAX) {
        // SAFETY: the list was begun.
        code |= unsafe { dpdk_sys::dcpshim_tel_add_number(data, number) };
    }
    code
}

/// # Safety
/// As [`write`].
unsafe fn write_fields(data: *mut rte_tel_data, fields: &[(&'static str, Field)]) -> c_int {
    // SAFETY: as the caller says.
    let mut code = unsafe { dpdk_sys::rte_tel_data_start_dict(data) };
    for (name, field) in fields.iter().take(FIELDS_MAX) {
        let name = printable(name);
        code |= match field {
            // SAFETY: the object was begun; strings are copied.
            Field::Number(number) => unsafe { dpdk_sys::dcpshim_tel_add_field(data, name.as_ptr(), *number) },
            Field::Text(text) => {
                let text = printable(text);
                // SAFETY: as above.
                unsafe { dpdk_sys::rte_tel_data_add_dict_string(data, name.as_ptr(), text.as_ptr()) }
            }
        };
    }
    code
}

/// Some releases of DPDK put texts into JSON as they are: no quotes, no backslashes, printable ASCII only.
fn printable(text: &str) -> CString {
    let legal = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
    let bytes: Vec<u8> =
        text.bytes().take(TEXT_MAX).map(|byte| if legal(byte) { byte } else { b'?' }).collect();
    CString::new(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_what_every_release_prints_as_json() {
        assert_eq!(printable("a\"b\\c\nd\u{e4}").as_bytes(), b"a?b?c?d??");
        assert_eq!(printable(&"x".repeat(200)).as_bytes().len(), 127);
    }
}

//! Where the JSON goes: whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::console::print;
use crate::failure::Failure;

/// Destination of the JSON, tried before the run so that a path that cannot be written costs no run.
#[derive(Debug)]
pub struct JsonSink {
    option: &'static str,
    target: Target,
    written: bool,
}

#[derive(Debug)]
enum Target {
    /// No JSON was asked for.
    Nowhere,
    Stdout,
    /// A pipe or a device: bytes that went there do not come back.
    Stream(PathBuf, File),
    /// A file; it keeps what it holds until there is something to replace it.
    Replaced(PathBuf),
    /// A file in a directory where no other can be made.
    Overwritten(PathBuf, File),
}

impl JsonSink {
    /// Finds out whether what `option` names can be written, and leaves it as it is.
    ///
    /// # Errors
    /// An environment failure: it cannot.
    pub fn open(option: &'static str, target: Option<&Path>) -> Result<Self, Failure> {
        let target = match target {
            None => Target::Nowhere,
            Some(path) if path == Path::new("-") => Target::Stdout,
            Some(path) => open(path).map_err(|error| cannot_write(option, path, &error))?,
        };
        Ok(Self { option, target, written: false })
    }

    /// Writes `json`.
    ///
    /// # Errors
    /// An environment failure: the disk is full, for one.
    pub fn write(&mut self, json: &str) -> Result<(), Failure> {
        self.written = true;
        let (path, outcome) = match &mut self.target {
            Target::Nowhere => return Ok(()),
            Target::Stdout => return print(&mut io::stdout().lock(), json),
            Target::Stream(path, file) => (path, file.write_all(json.as_bytes())),
            Target::Replaced(path) => {
                let outcome = replace(path, json);
                (path, outcome)
            }
            Target::Overwritten(path, file) => {
                (path, file.set_len(0).and_then(|()| file.write_all(json.as_bytes())))
            }
        };
        outcome.map_err(|error| cannot_write(self.option, path, &error))
    }

    /// Whether anything was written, or tried.
    pub const fn is_written(&self) -> bool {
        self.written
    }
}

fn open(path: &Path) -> io::Result<Target> {
    // Names that lead to open files, such as /dev/stdout, must not be replaced, whatever they lead to.
    let is_alias = path.starts_with("/dev") || path.starts_with("/proc");
    let there = fs::metadata(path);
    if is_alias || there.as_ref().is_ok_and(|it| !it.is_file()) {
        return Ok(Target::Stream(path.to_owned(), OpenOptions::new().append(true).open(path)?));
    }
    let existing = OpenOptions::new().write(true).open(path);
    // A file that may not be written is not replaced either. Behind a link, the file is replaced and not the link.
    let real = match (there, &existing) {
        (Ok(_), Err(_)) => return Err(existing.expect_err("it just was one")),
        (Ok(_), Ok(_)) => fs::canonicalize(path)?,
        (Err(_), _) if fs::symlink_metadata(path).is_ok() => {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            return Ok(Target::Overwritten(path.to_owned(), file));
        }
        (Err(_), _) => path.to_owned(),
    };
    let tried = create_beside(&real).and_then(|(name, _)| fs::remove_file(name));
    match (tried, existing) {
        (Ok(()), _) => Ok(Target::Replaced(real)),
        (Err(_), Ok(file)) => Ok(Target::Overwritten(real, file)),
        (Err(error), Err(_)) => Err(error),
    }
}

/// A new file in the same directory.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.with_file_name(format!(".dcp-bench-{}.tmp", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&name)?;
    Ok((name, file))
}

fn replace(path: &Path, json: &str) -> io::Result<()> {
    let (name, mut file) = create_beside(path)?;
    let written = file.write_all(json.as_bytes()).and_then(|()| match fs::metadata(path) {
        Ok(before) => file.set_permissions(before.permissions()),
        Err(_) => Ok(()),
    });
    written.and_then(|()| fs::rename(&name, path)).inspect_err(|_| {
        let _ = fs::remove_file(&name);
    })
}

fn cannot_write(option: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::environment(format!("cannot write {}: {error}", path.display()))
        .with_hint(format!("give {option} a file in a directory that you may write to, or - for stdout"))
}

/// Refuses options that name one file, where one would overwrite what the other has.
///
/// # Errors
/// A usage failure that names the two.
pub fn refuse_one_file_twice(files: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let mut seen: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in files {
        let Some(real) = path.and_then(real_file) else { continue };
        if let Some((other, _)) = seen.iter().find(|(_, it)| *it == real) {
            return Err(Failure::usage(format!(
                "{other} and {option} are the same file, {}: give each a file of its own",
                path.unwrap_or(&real).display()
            )));
        }
        seen.push((option, real));
    }
    Ok(())
}

/// The one name of a file, also of one that is not there yet; none for stdout, pipes and devices.
fn real_file(path: &Path) -> Option<PathBuf> {
    if path == Path::new("-") || fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        return None;
    }
    if let Ok(real) = fs::canonicalize(path) {
        return Some(real);
    }
    let parent = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    Some(parent.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("dcp-sink-{name}-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        place
    }

    fn names(place: &Path) -> usize {
        fs::read_dir(place).unwrap().count()
    }

    #[test]
    fn file_that_cannot_be_written_is_named() {
        let failure = JsonSink::open("--json", Some(Path::new("/nonexistent/out.json"))).unwrap_err();
        assert_eq!(failure.exit_code(), 3);
        assert!(failure.message.starts_with("cannot write /nonexistent/out.json: "));
        assert!(failure.hint.unwrap().contains("--json"));
        let place = place("directory");
        let failure = JsonSink::open("--json", Some(&place)).unwrap_err();
        assert!(failure.message.contains("directory"), "{failure}");
        fs::remove_dir(place).unwrap();
    }

    #[test]
    fn old_file_stays_until_there_is_a_new_one() {
        let place = place("old");
        let path = place.join("out.json");
        fs::write(&path, "old").unwrap();
        let mut sink = JsonSink::open("--json", Some(&path)).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(&place)), ("old", 1));
        assert!(!sink.is_written());
        for json in ["{}", "{\"a\":1}"] {
            sink.write(json).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), json);
        }
        assert!(sink.is_written());
        assert_eq!(names(&place), 1);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn new_file_is_not_there_before_it_is_whole() {
        let place = place("new");
        let mut sink = JsonSink::open("--json", Some(&place.join("out.json"))).unwrap();
        assert_eq!(names(&place), 0);
        sink.write("{}").unwrap();
        assert_eq!(names(&place), 1);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn link_stays_a_link_to_what_is_written() {
        let place = place("link");
        let (file, link, lost) = (place.join("file"), place.join("link"), place.join("lost"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink(place.join("later"), &lost).unwrap();
        for path in [&link, &lost] {
            JsonSink::open("--json", Some(path)).unwrap().write("{}").unwrap();
            assert!(path.is_symlink() && fs::read_to_string(path).unwrap() == "{}");
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn device_is_written_to_and_not_replaced() {
        JsonSink::open("--json", Some(Path::new("/dev/null"))).unwrap().write("{}").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn one_file_for_two_options_is_refused_however_it_is_spelt() {
        let place = place("same");
        let (new, old, link) = (place.join("new"), place.join("old"), place.join("link"));
        fs::write(&old, "old").unwrap();
        std::os::unix::fs::symlink(&old, &link).unwrap();
        let around = place.join("..").join(place.file_name().unwrap()).join("new");
        for (one, other) in [(&new, &new), (&new, &around), (&old, &link)] {
            let failure =
                refuse_one_file_twice(&[("--json", Some(one)), ("--csv", None), ("--svg", Some(other))]);
            let failure = failure.unwrap_err();
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.message.starts_with("--json and --svg are the same file"), "{failure}");
        }
        for (one, other) in [(new.as_path(), old.as_path()), (Path::new("-"), Path::new("-"))] {
            refuse_one_file_twice(&[("--json", Some(one)), ("--csv", Some(other))]).unwrap();
        }
        let null = Path::new("/dev/null");
        refuse_one_file_twice(&[("--json", Some(null)), ("--csv", Some(null))]).unwrap();
        fs::remove_dir_all(place).unwrap();
    }
}

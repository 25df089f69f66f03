//! The configuration file.

use std::path::Path;

use crate::failure::Failure;
use crate::settings::Settings;

/// Reads a file.
///
/// # Errors
/// It cannot be read, or says something that is not allowed: file, line, key, and what is.
pub fn read(path: &Path) -> Result<Settings, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    parse(&text).map_err(|sentence| Failure::usage(format!("{}:{sentence}", path.display())))
}

/// Settings from the text of a file, or `LINE: sentence`.
fn parse(text: &str) -> Result<Settings, String> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start).min(text.len());
        let line = text[..start].matches('\n').count() + 1;
        let message = error.message().trim().replace('\n', "; ");
        match key_of(text.lines().nth(line - 1).unwrap_or_default()) {
            Some(key) if !message.contains(&format!("`{key}`")) => format!("{line}: {key}: {message}"),
            _ => format!("{line}: {message}"),
        }
    })
}

/// The key of a line `key = value`.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let is_key = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    is_key.then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file that the documentation shows.
    const EXAMPLE: &str = include_str!("../dcp-switch.toml");

    #[test]
    fn example_file_is_legal_and_says_what_it_means() {
        let settings = parse(EXAMPLE).unwrap();
        assert_eq!(settings.port.len(), 4);
        assert_eq!(settings.threshold.unwrap().0, 512 << 10);
        assert_eq!(settings.group[0].weights, [1, 4]);
    }

    /// Every key that the file can have stands in the example, so that it is the reference.
    #[test]
    fn example_file_has_every_key() {
        let unknown = parse("nonsense = 1").unwrap_err();
        let top = unknown.split('`').skip(3).step_by(2);
        let port = parse("[[port]]\nnonsense = 1").unwrap_err();
        let faults = parse("[faults]\nnonsense = 1").unwrap_err();
        let keys: Vec<&str> = top
            .chain(port.split('`').skip(3).step_by(2))
            .chain(faults.split('`').skip(3).step_by(2))
            .collect();
        assert!(keys.len() > 35, "{keys:?}");
        for key in keys {
            let forms =
                [format!("{key} ="), format!("[[{key}]]"), format!("[{key}]"), format!("port.{key}]")];
            assert!(forms.iter().any(|form| EXAMPLE.contains(form)), "{key} is not in the example");
        }
    }

    // D6
    #[test]
    fn mistakes_come_with_line_key_and_what_is_allowed() {
        for (text, sentence) in [
            (
                "seed = 1\ntreshold = 5",
                "2: unknown field `treshold`, expected one of `port`, `group`, `threshold`",
            ),
            ("\nthreshold = \"2G\"", "2: threshold: 2G is out of range: a size is 0 to 1G"),
            ("threshold = -1", "1: threshold: \"-1\" is no size: write a whole number"),
            ("lb = \"best\"", "1: lb: there is no balancing \"best\": write ecmp, spray"),
            ("ecn = \"400K,100K,0.2\"", "1: ecn: KMIN must not be above KMAX"),
            ("radix = 1", "1: radix: \"1\" is no radix: write 2 to 1024"),
            ("[faults]\n\ntrim = 1.5", "3: trim: \"1.5\" is no probability: write 0 to 1"),
            ("[[port]]\nuri = \"memfi:/tmp/s\"", "2: uri: \"memfi:/tmp/s\" is no device: write"),
            ("[[port]]\nlink-gbps = 1", "1: missing field `uri`"),
            (
                "[[port]]\nuri = \"tap:t0\"\n[port.faults]\nfall = 1",
                "4: unknown field `fall`, expected one of `trim`",
            ),
            ("mtu = true", "1: mtu: invalid type: boolean `true`, expected u32"),
            ("seed = 1\nseed = 2", "2: seed: duplicate key"),
            ("port = [", "1: port: unclosed array"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(sentence), "{text:?} gives {error:?}");
        }
    }
}

//! The JSON of a run.

use serde_json::Value;

/// What `--json -` said.
#[derive(Clone, PartialEq, Debug)]
pub struct Results(pub Value);

impl Results {
    /// Messages completed.
    pub fn iterations(&self) -> u64 {
        self.row()["iterations"].as_u64().expect("a whole number")
    }

    /// A counter of the network.
    pub fn net(&self, counter: &str) -> u64 {
        self.row()["net"][counter].as_u64().unwrap_or_else(|| panic!("no counter {counter} in {}", self.0))
    }

    /// Whether the data arrived as it was sent; `None` when nothing was delivered.
    pub fn verified(&self) -> Option<bool> {
        self.row()["verified"].as_bool()
    }

    /// The row itself.
    pub fn row(&self) -> &Value {
        let row = &self.0["results"][0];
        assert!(row.is_object(), "no row in {}", self.0);
        row
    }

    /// The error object of a failed run.
    pub fn error(&self) -> &Value {
        let error = &self.0["error"];
        assert!(error.is_object(), "no error in {}", self.0);
        error
    }
}

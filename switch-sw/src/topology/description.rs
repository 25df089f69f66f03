//! What a user writes about a network.

use serde::Deserialize;

use super::error::TopologyError;

/// A network as a TOML file has it:
///
/// ```
/// let text = r#"
///     host_gbps = 10
///
///     [[switch]]
///     name = "left"
///     hosts = 1
///
///     [[switch]]
///     name = "right"
///     hosts = 2
///
///     [[link]]
///     between = ["left", "right"]
///     gbps = 2.5
///
///     [[link]]
///     between = ["left", "right"]
///     gbps = 10
///     weight = 4
/// "#;
/// let description = dcp_switch::topology::Description::from_toml(text)?;
/// assert_eq!(description.hosts(), 3);
/// # Ok::<(), dcp_switch::topology::TopologyError>(())
/// ```
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Rate of the links to hosts, both ways, in Gb/s; 0 = no limit. Without it the user of the description says.
    pub host_gbps: Option<f64>,
    /// The switches, `[[switch]]`.
    #[serde(default, rename = "switch")]
    pub switches: Vec<SwitchDescription>,
    /// The links between them, `[[link]]`.
    #[serde(default, rename = "link")]
    pub links: Vec<LinkDescription>,
}

/// A switch.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchDescription {
    /// What links call it.
    pub name: String,
    /// Hosts at it. All hosts are numbered in the order of the switches.
    #[serde(default)]
    pub hosts: u32,
    /// Rate of the links to its hosts, where it is not the same for all.
    pub host_gbps: Option<f64>,
}

/// A link between two switches, or several alike.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkDescription {
    /// Names of the switches at its ends.
    pub between: [String; 2],
    /// How many such links there are.
    #[serde(default = "one")]
    pub count: u32,
    /// Rate, both ways, in Gb/s; 0 = no limit. Without it the user of the description says.
    pub gbps: Option<f64>,
    /// Share of the traffic that it is to have among parallel ones.
    #[serde(default = "one")]
    pub weight: u32,
    /// Propagation delay, in microseconds.
    #[serde(default)]
    pub delay_us: f64,
}

const fn one() -> u32 {
    1
}

impl Description {
    /// Reads a description.
    ///
    /// # Errors
    /// Where the text is wrong, and what would be right.
    pub fn from_toml(text: &str) -> Result<Self, TopologyError> {
        toml::from_str(text).map_err(|error| TopologyError::Syntax(error.to_string()))
    }

    /// All hosts at one switch.
    pub fn single(hosts: u32) -> Self {
        Self { switches: vec![SwitchDescription::new("switch", hosts)], ..Self::default() }
    }

    /// Two switches with parallel links between them (the paper's Figure 9): the first host behind one, the others
    /// behind the other. A link for each weight; the heaviest has the rate of `gbps`, the others their part of it.
    pub fn two_switch(hosts: u32, weights: &[u32], gbps: f64) -> Self {
        let heaviest = weights.iter().copied().max().unwrap_or(1);
        let [left, right] = ["left", "right"];
        let link = |&weight: &u32| LinkDescription {
            between: [left.to_owned(), right.to_owned()],
            count: 1,
            gbps: Some(gbps * f64::from(weight) / f64::from(heaviest.max(1))),
            weight,
            delay_us: 0.0,
        };
        Self {
            host_gbps: None,
            switches: vec![
                SwitchDescription::new(left, hosts.min(1)),
                SwitchDescription::new(right, hosts.saturating_sub(1)),
            ],
            links: weights.iter().map(link).collect(),
        }
    }

    /// Hosts of all switches.
    pub fn hosts(&self) -> u32 {
        self.switches.iter().fold(0, |sum, switch| sum.saturating_add(switch.hosts))
    }
}

impl SwitchDescription {
    /// A switch with so many hosts.
    pub fn new(name: &str, hosts: u32) -> Self {
        Self { name: name.to_owned(), hosts, host_gbps: None }
    }
}

//! Where a value came from: its layer, and the file, variable or flag.

use std::fmt;

/// The layers, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layer {
    Default,
    User,
    Bmad,
    Project,
    Environment,
    Flags,
}

impl Layer {
    /// Returns whether the layer came with the project, so that its author may not be the user who runs it.
    pub fn is_the_project_s(self) -> bool {
        matches!(self, Layer::Bmad | Layer::Project)
    }

    pub fn word(self) -> &'static str {
        match self {
            Layer::Default => "default",
            Layer::User => "user",
            Layer::Bmad => "bmad",
            Layer::Project => "project",
            Layer::Environment => "environment",
            Layer::Flags => "flags",
        }
    }
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub layer: Layer,
    /// The file, the variable or the flag.
    pub name: String,
    pub line: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, self.line) {
            (Layer::Default, _) => f.write_str("default"),
            (_, Some(line)) => write!(f, "{}:{line}", self.name),
            (_, None) => f.write_str(&self.name),
        }
    }
}

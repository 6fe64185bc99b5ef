//! Where a value came from: its layer, and the file, variable or flag.

use std::fmt;

/// The layers, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingLayer {
    Default,
    User,
    Bmad,
    Project,
    Environment,
    Flags,
}

impl SettingLayer {
    /// Returns whether the layer came with the project, so that its author may not be the user who runs it.
    pub fn is_from_project(self) -> bool {
        matches!(self, SettingLayer::Bmad | SettingLayer::Project)
    }

    pub fn layer_name(self) -> &'static str {
        match self {
            SettingLayer::Default => "default",
            SettingLayer::User => "user",
            SettingLayer::Bmad => "bmad",
            SettingLayer::Project => "project",
            SettingLayer::Environment => "environment",
            SettingLayer::Flags => "flags",
        }
    }
}

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingOrigin {
    pub layer: SettingLayer,
    /// The file, the variable or the flag.
    pub source_name: String,
    pub line_number: Option<usize>,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.layer, self.line_number) {
            (SettingLayer::Default, _) => formatter.write_str("default"),
            (_, Some(line_number)) => write!(formatter, "{}:{line_number}", self.source_name),
            (_, None) => formatter.write_str(&self.source_name),
        }
    }
}

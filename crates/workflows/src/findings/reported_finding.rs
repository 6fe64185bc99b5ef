//! What a review reports to the run that started it.

use alloc::{string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::findings::finding::Severity;

/// The findings that a child run leaves to its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftFindings {
    /// The findings that it left open or blocked, most severe first; at most [`MAX_REPORTED_FINDINGS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_findings: Vec<ReportedFinding>,
    /// How many findings it left open in all.
    #[serde(default)]
    pub open_count: u32,
    /// The findings that it put off, most severe first; at most [`MAX_REPORTED_FINDINGS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred_findings: Vec<ReportedFinding>,
}

/// The most findings that a child reports to its parent.
pub const MAX_REPORTED_FINDINGS: usize = 40;

/// A finding as a child run reports it to its parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReportedFinding {
    pub severity: Severity,
    pub description: String,
    /// Where it is, for instance `src/pay.py:12`; empty if that is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

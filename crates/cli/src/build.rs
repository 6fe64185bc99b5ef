//! Facts about this binary: its version, its source and its formats.

use std::{fmt::Write, sync::LazyLock};

use schemars::JsonSchema;
use serde::Serialize;
use tribunal_core::event::EVENT_VERSION;

/// The version as journals and `-V` show it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The document of `tribunal --version --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Facts {
    pub schema: &'static str,
    pub version: &'static str,
    /// The commit; none if the binary was not built in a checkout. A `+` says that files had been changed.
    pub commit: Option<&'static str>,
    pub target: &'static str,
    pub profile: &'static str,
    pub rustc: &'static str,
    pub sqlite: &'static str,
    /// The format of the journal file; the next field is the format of its entries.
    pub journal_format: i32,
    pub event_format: u16,
}

pub(crate) fn facts() -> Facts {
    Facts {
        schema: "tribunal.version/1",
        version: VERSION,
        commit: Some(env!("TRIBUNAL_BUILD_COMMIT")).filter(|commit| !commit.is_empty()),
        target: env!("TRIBUNAL_BUILD_TARGET"),
        profile: env!("TRIBUNAL_BUILD_PROFILE"),
        rustc: env!("TRIBUNAL_BUILD_RUSTC"),
        sqlite: tribunal_store::sqlite_version(),
        journal_format: tribunal_store::FORMAT,
        event_format: EVENT_VERSION,
    }
}

/// The text that follows the name after `--version`.
pub(crate) fn long_version() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| written(&facts()));
    &LONG
}

/// Formats the facts as lines.
fn written(facts: &Facts) -> String {
    let mut out = format!("{VERSION}\n");
    for (name, value) in [
        ("commit", facts.commit.unwrap_or("unknown: not built in a checkout")),
        ("target", facts.target),
        ("profile", facts.profile),
        ("rustc", facts.rustc),
        ("sqlite", facts.sqlite),
    ] {
        let _ = writeln!(out, "{name:<9}{value}");
    }
    let _ = write!(out, "journal  format {}, entries {}", facts.journal_format, facts.event_format);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_checkout_says_so() {
        let facts = Facts {
            version: VERSION,
            commit: None,
            target: "x86_64-unknown-linux-gnu",
            profile: "dist",
            rustc: "rustc 1.95.0",
            sqlite: "3.51.0",
            ..facts()
        };
        let text = written(&facts).replace(VERSION, "1.2.3");
        insta::assert_snapshot!(text, @r"
        1.2.3
        commit   unknown: not built in a checkout
        target   x86_64-unknown-linux-gnu
        profile  dist
        rustc    rustc 1.95.0
        sqlite   3.51.0
        journal  format 1, entries 1
        ");
    }

    #[test]
    fn what_cargo_knows_is_known() {
        let facts = facts();
        for fact in [facts.target, facts.profile, facts.rustc, facts.sqlite] {
            assert!(!fact.is_empty(), "{facts:?}");
        }
    }
}

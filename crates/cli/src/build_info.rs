//! Facts about this binary: its version, its source and its formats.

use std::{fmt::Write, sync::LazyLock};

use tribunal_engine::event::EVENT_VERSION;
use tribunal_json::{Serialize, schemars};

/// The version as journals and `-V` show it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The document of `tribunal --version --json`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct BuildFacts {
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

pub(crate) fn build_facts() -> BuildFacts {
    BuildFacts {
        schema: "tribunal.version/1",
        version: VERSION,
        commit: Some(env!("TRIBUNAL_BUILD_COMMIT")).filter(|commit| !commit.is_empty()),
        target: env!("TRIBUNAL_BUILD_TARGET"),
        profile: env!("TRIBUNAL_BUILD_PROFILE"),
        rustc: env!("TRIBUNAL_BUILD_RUSTC"),
        sqlite: tribunal_store::sqlite_version(),
        journal_format: tribunal_store::JOURNAL_FORMAT,
        event_format: EVENT_VERSION,
    }
}

/// The text that follows the name after `--version`.
pub(crate) fn long_version() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| format_facts(&build_facts()));
    &LONG
}

/// Formats the facts as lines.
fn format_facts(facts: &BuildFacts) -> String {
    let mut rendered = format!("{VERSION}\n");
    for (fact_name, fact_value) in [
        ("commit", facts.commit.unwrap_or("unknown (not built from a git checkout)")),
        ("target", facts.target),
        ("profile", facts.profile),
        ("rustc", facts.rustc),
        ("sqlite", facts.sqlite),
    ] {
        let _ = writeln!(rendered, "{fact_name:<9}{fact_value}");
    }
    let _ = write!(rendered, "journal  format {}, entries {}", facts.journal_format, facts.event_format);
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_checkout_says_so() {
        let unknown_build = BuildFacts {
            version: VERSION,
            commit: None,
            target: "x86_64-unknown-linux-gnu",
            profile: "dist",
            rustc: "rustc 1.95.0",
            sqlite: "3.51.0",
            ..build_facts()
        };
        let version_text = format_facts(&unknown_build).replace(VERSION, "1.2.3");
        insta::assert_snapshot!(version_text, @"
        1.2.3
        commit   unknown (not built from a git checkout)
        target   x86_64-unknown-linux-gnu
        profile  dist
        rustc    rustc 1.95.0
        sqlite   3.51.0
        journal  format 1, entries 1
        ");
    }

    #[test]
    fn every_build_fact_is_filled() {
        let own_facts = build_facts();
        for fact in [own_facts.target, own_facts.profile, own_facts.rustc, own_facts.sqlite] {
            assert!(!fact.is_empty(), "{own_facts:?}");
        }
    }
}

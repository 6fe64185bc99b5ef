//! The settings file as people write it.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    num::{NonZeroU32, NonZeroU64},
    path::Path,
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use tribunal_core::{
    level::{Goal, Level, Tier},
    limits::Cost,
};

use super::nearest;
use crate::complaint::Complaint;

/// The file's name in a project's root.
pub(crate) const FILE: &str = "tribunal.yaml";

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawSettings {
    /// 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise.
    pub tier: Option<Tier>,
    /// How big the panel is; else it follows from the tier.
    pub level: Option<Level>,
    pub goal: Option<Goal>,
    /// Where trackers go; else BMAD's output folder.
    pub output_folder: Option<String>,
    pub agents: RawAgents,
    /// Commands that must pass before a fix lands, run by `sh -c` in a private copy of the project.
    pub verify: Vec<String>,
    pub limits: RawLimits,
    pub tasks: RawTasks,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawLimits {
    pub max_review_rounds: Option<NonZeroU32>,
    pub max_fix_iterations: Option<NonZeroU32>,
    pub max_failures: Option<NonZeroU32>,
    pub max_findings: Option<NonZeroU32>,
    pub max_runtime_minutes: Option<NonZeroU64>,
    #[serde(deserialize_with = "some_cost")]
    pub max_cost: Option<Cost>,
    pub max_tokens: Option<NonZeroU64>,
}

fn some_cost<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cost>, D::Error> {
    let amount = f64::deserialize(from)?;
    if amount > 0.0 && amount.is_finite() {
        Ok(Some(Cost::of(amount)))
    } else {
        Err(serde::de::Error::custom(format!("max_cost is {amount}; it must be more than 0")))
    }
}

/// Times in seconds.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RawTasks {
    pub required_issues: Option<u32>,
    pub max_concurrent_fixers: Option<NonZeroU32>,
    pub max_issues_per_agent: Option<NonZeroU32>,
    pub reviewer_timeout: Option<NonZeroU64>,
    pub party_timeout: Option<NonZeroU64>,
    pub fixer_timeout: Option<NonZeroU64>,
    pub idle_timeout: Option<NonZeroU64>,
    pub retry_after: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RawDriver {
    Command,
    Replay,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAgent {
    pub driver: RawDriver,
    /// For `command`: the program and its arguments; it reads the prompt from standard input.
    #[serde(default)]
    pub argv: Vec<String>,
    /// For `replay`: a script, relative to the project.
    #[serde(default)]
    pub script: Option<String>,
}

/// Agents by name; `use` says which of them take part.
#[derive(Debug, Default)]
pub(crate) struct RawAgents {
    pub used: Vec<String>,
    pub named: BTreeMap<String, RawAgent>,
}

impl<'de> Deserialize<'de> for RawAgents {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RawAgents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("agents by name, and `use: [NAME, …]`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawAgents, A::Error> {
                let mut agents = RawAgents::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "use" {
                        agents.used = map.next_value()?;
                    } else {
                        agents.named.insert(key, map.next_value()?);
                    }
                }
                Ok(agents)
            }
        }
        from.deserialize_map(Reader)
    }
}

impl JsonSchema for RawAgents {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Agents".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agent = generator.subschema_for::<RawAgent>();
        json_schema!({
            "type": "object",
            "properties": { "use": { "type": "array", "items": { "type": "string" } } },
            "additionalProperties": agent,
        })
    }
}

/// Reads a project's settings; a project without the file has none.
pub(crate) fn read(root: &Path) -> Result<RawSettings, Complaint> {
    let path = root.join(FILE);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(RawSettings::default()),
        Err(cause) => {
            return Err(Complaint::usage(format!("{} cannot be read: {cause}", path.display()))
                .why("Nothing was started.")
                .todo("make it a readable UTF-8 file, or remove it"));
        }
    };
    parse(&path.display().to_string(), &text)
}

fn parse(path: &str, text: &str) -> Result<RawSettings, Complaint> {
    // A file of comments only is an empty file.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(RawSettings::default());
    }
    serde_saphyr::from_str(text).map_err(|cause| {
        let place = match cause.location() {
            Some(location) => format!("{path}, line {}", location.line()),
            None => path.to_string(),
        };
        let message = plain_message(&cause.without_snippet().to_string());
        let line = cause
            .location()
            .and_then(|at| text.lines().nth(usize::try_from(at.line()).ok()?.checked_sub(1)?));
        let line = line.map(|line| format!("It stands in: {}\n", line.trim())).unwrap_or_default();
        let complaint =
            Complaint::usage(format!("{place}: {message}")).why(format!("{line}Nothing was started."));
        match suggestion(&message) {
            Some(near) => complaint.todo(format!("did you mean `{near}`?")),
            None => complaint.todo("see what is allowed: tribunal schema settings"),
        }
    })
}

/// The parser's first line, without the position that we have already named.
fn plain_message(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    let first = first.split(" at line ").next().unwrap_or(first);
    first.trim_start_matches("error: ").to_string()
}

/// "unknown field `x`, expected one of a, b": the nearest of the expected ones.
fn suggestion(message: &str) -> Option<String> {
    let unknown = message.split('`').nth(1)?;
    let (_, known) = message.split_once("expected ")?;
    let known = known.trim_start_matches("one of ");
    let known: Vec<&str> = known.split(", ").map(|name| name.trim_matches('`')).collect();
    nearest(unknown, &known).map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        parse("tribunal.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_line_and_the_nearest_one() {
        let said = complaint("tier: 2\nagnets:\n  use: [x]\n");
        assert!(said.contains("tribunal.yaml, line 2"), "{said}");
        assert!(said.contains("did you mean `agents`?"), "{said}");
        let said = complaint("limits:\n  max_review_round: 2\n");
        assert!(said.contains("line 2") && said.contains("`max_review_rounds`?"), "{said}");
        let said = complaint("agents:\n  use: [a]\n  a:\n    driver: comand\n");
        assert!(said.contains("line 4") && said.contains("did you mean `command`?"), "{said}");
    }

    #[test]
    fn broken_yaml_and_impossible_values_name_their_line() {
        for (text, line) in [
            ("tier: 2\nverify: [\n", "line "),
            ("\ntier: 7\n", "line 2"),
            ("limits:\n  max_review_rounds: 0\n", "line 2"),
            ("verify: yes\n", "line 1"),
            ("limits: {max_cost: -1}\n", "it must be more than 0"),
        ] {
            let said = complaint(text);
            assert!(said.contains(line), "{text}: {said}");
            assert!(said.contains("tribunal schema settings"), "{said}");
        }
    }

    #[test]
    fn an_empty_file_is_no_error() {
        assert!(parse("tribunal.yaml", "# nothing yet\n").is_ok());
        assert!(parse("tribunal.yaml", "").is_ok());
    }
}

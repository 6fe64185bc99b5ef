//! Writes the `tribunal.yaml` of a new project: the common settings, explained, with their defaults.
//!
//! It has only settings that this version uses. An existing file belongs to the user and is never changed.

use clap::ValueEnum;
use tribunal_runner::{Project, edits::Edit};

use super::{Arguments, Plan, read};
use crate::{
    complaint::Complaint,
    settings::{FILE, written_default},
};

/// How thorough reviews are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Profile {
    /// One person: two reviewers, and every patch is seen before it lands
    Solo,
    /// Several people: full panels; decisions wait for a person
    Team,
    /// Every step is seen by a person, and runs may take long
    Enterprise,
    /// One reviewer, one round, little time and money
    QuickFix,
}

impl Profile {
    pub fn word(self) -> &'static str {
        match self {
            Profile::Solo => "solo",
            Profile::Team => "team",
            Profile::Enterprise => "enterprise",
            Profile::QuickFix => "quick-fix",
        }
    }

    /// Returns what the profile sets; everything else keeps its default.
    fn values(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Profile::Solo => &[("tier", "1"), ("approve", "each")],
            Profile::Team => &[("tier", "2"), ("approve", "never")],
            Profile::Enterprise => &[
                ("tier", "4"),
                ("approve", "each"),
                ("limits.max_review_rounds", "5"),
                ("limits.max_runtime_minutes", "240"),
                ("limits.max_cost", "20.00"),
            ],
            Profile::QuickFix => &[
                ("tier", "0"),
                ("approve", "never"),
                ("limits.max_review_rounds", "1"),
                ("limits.max_runtime_minutes", "30"),
                ("limits.max_cost", "1.00"),
            ],
        }
    }
}

/// A block of settings, each with its description. The defaults come from the table of settings.
struct Block {
    name: &'static str,
    settings: &'static [(&'static str, &'static str)],
}

const BLOCKS: [Block; 4] = [
    Block {
        name: "",
        settings: &[
            (
                "tier",
                "How heavy the process is: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise.",
            ),
            ("goal", "When a review is good: zero-open, or critical-only."),
            ("approve", "Whether a person sees each patch before it lands: never, or each."),
            (
                "verify",
                "Checks that must pass before a fix lands, for instance: [\"make test\"]. They run in a copy.",
            ),
        ],
    },
    Block {
        name: "agents",
        settings: &[
            (
                "use",
                "Who takes part, for instance: [claude-code, codex]. Else the first client that is signed in.",
            ),
            ("at_once", "Agents that work at the same time."),
        ],
    },
    Block {
        name: "limits",
        settings: &[
            ("max_review_rounds", "Rounds of a review."),
            ("max_fix_iterations", "Tries to fix what one round found."),
            (
                "max_runtime_minutes",
                "How long a run may work, in minutes; waiting for a person does not count.",
            ),
            ("max_cost", "What a run may cost in dollars, where agents report it."),
        ],
    },
    Block {
        name: "tasks",
        settings: &[
            ("required_issues", "What a reviewer must find in round 1, or is asked once more."),
            ("reviewer_timeout", "How long a reviewer may take, in seconds."),
            ("fixer_timeout", "How long a fixer may take, in seconds."),
        ],
    },
];

pub(super) fn set(plan: &mut Plan, arguments: &Arguments, project: &Project) -> Result<(), Complaint> {
    let old = read(project, FILE)?;
    match (&old, arguments.profile) {
        (None, profile) => {
            plan.edits.push(Edit { path: FILE.to_string(), old: None, new: Some(text(profile)) });
        }
        // An existing file needs no note, unless the user asked for a profile that has no effect on it.
        (Some(_), None) => {}
        (Some(_), Some(profile)) => {
            let values: Vec<String> =
                profile.values().iter().map(|(path, value)| format!("{path}={value}")).collect();
            plan.notes.push(format!(
                "{FILE} is there and is not changed; the profile {} would set in it: {}",
                profile.word(),
                values.join(", ")
            ));
        }
    }
    Ok(())
}

/// Renders the file. Settings of the profile are active, all others are commented out with their default.
fn text(profile: Option<Profile>) -> String {
    let mut out = format!(
        "# Settings of Tribunal for this project{}. Behind a # without a blank: what holds as long as nothing else is said.\n\
         # What holds here, and why: tribunal inspect settings\n\
         # Everything that can be set: tribunal schema settings\n",
        profile.map_or_else(String::new, |profile| format!(" (profile {})", profile.word()))
    );
    for block in &BLOCKS {
        out.push('\n');
        // A block without a name has top-level settings.
        let indent = if block.name.is_empty() { "" } else { "  " };
        if !block.name.is_empty() {
            out.push_str(&format!("{}:\n", block.name));
        }
        for (name, about) in block.settings {
            let path =
                if block.name.is_empty() { name.to_string() } else { format!("{}.{name}", block.name) };
            // A profile overrides few settings; the file shows all of them, so that it can serve as a reference.
            let values = profile.map(Profile::values).unwrap_or_default();
            let line = match values.iter().find(|(known, _)| *known == path) {
                Some((_, value)) => format!("{name}: {value}"),
                // The only setting without a default is a list.
                None => format!("#{name}: {}", written_default(&path).as_deref().unwrap_or("[]")),
            };
            out.push_str(&format!("{indent}# {about}\n{indent}{line}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Effective, Manner};

    const PROFILES: [Option<Profile>; 5] =
        [None, Some(Profile::Solo), Some(Profile::Team), Some(Profile::Enterprise), Some(Profile::QuickFix)];

    #[test]
    fn what_is_written_is_what_is_read() {
        for profile in PROFILES {
            let reading = crate::settings::read(FILE, &text(profile), Manner::Strict);
            assert!(reading.problems.is_empty(), "{:?}", reading.problems);
            let found: Vec<&str> = reading.found.iter().map(|found| found.path.as_str()).collect();
            let values = profile.map(Profile::values).unwrap_or_default();
            assert_eq!(found, values.iter().map(|(path, _)| *path).collect::<Vec<_>>());
        }
        insta::assert_snapshot!(text(Some(Profile::QuickFix)));
    }

    #[test]
    fn what_stands_behind_a_mark_is_real_too_and_the_default() {
        let lines: Vec<String> = text(None)
            .lines()
            .map(|line| {
                let bare = line.trim_start();
                let is_setting = bare.starts_with('#') && !bare.starts_with("# ");
                if is_setting { line.replacen('#', "", 1) } else { line.to_string() }
            })
            .collect();
        let reading = crate::settings::read(FILE, &lines.join("\n"), Manner::Strict);
        assert!(reading.problems.is_empty(), "{:?}", reading.problems);
        let count: usize = BLOCKS.iter().map(|block| block.settings.len()).sum();
        assert_eq!(reading.found.len(), count);
        let defaults = Effective::defaults();
        for found in reading.found {
            let expected = defaults.get(&found.path);
            assert!(
                expected == Some(&found.value) || found.path == "agents.use",
                "{}: {expected:?}",
                found.path
            );
        }
    }
}

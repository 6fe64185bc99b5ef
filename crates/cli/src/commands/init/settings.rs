//! Writes the `tribunal.yaml` of a new project: the common settings, explained, with their defaults.
//!
//! It has only settings that this version uses. An existing file belongs to the user and is never changed.

use clap::ValueEnum;
use tribunal_runner::{
    Project,
    project::{SettingsFileChoice, file_edits::FileEdit},
};

use super::{InitArguments, InitPlan, read_project_file};
use crate::{
    messages::user_errors::UserError,
    settings::{self, default_as_written},
};

/// How thorough reviews are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReviewProfile {
    /// One developer: two reviewers; patches are applied without asking, and can be undone
    Solo,
    /// Several developers: full panels; decisions wait for you
    Team,
    /// Full process: you approve every patch, and runs can take long
    Enterprise,
    /// One reviewer, one round, low time and cost limits
    QuickFix,
}

impl ReviewProfile {
    pub fn as_str(self) -> &'static str {
        match self {
            ReviewProfile::Solo => "solo",
            ReviewProfile::Team => "team",
            ReviewProfile::Enterprise => "enterprise",
            ReviewProfile::QuickFix => "quick-fix",
        }
    }

    /// Returns what the profile sets; everything else keeps its default.
    fn preset_values(self) -> &'static [(&'static str, &'static str)] {
        match self {
            ReviewProfile::Solo => &[("tier", "1"), ("approve", "never")],
            ReviewProfile::Team => &[("tier", "2"), ("approve", "never")],
            ReviewProfile::Enterprise => &[
                ("tier", "4"),
                ("approve", "each"),
                ("limits.max_review_rounds", "5"),
                ("limits.max_runtime_minutes", "240"),
                ("limits.max_cost", "20.00"),
            ],
            ReviewProfile::QuickFix => &[
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
struct SettingsBlock {
    section: &'static str,
    setting_docs: &'static [(&'static str, &'static str)],
}

const SETTINGS_BLOCKS: [SettingsBlock; 4] = [
    SettingsBlock {
        section: "",
        setting_docs: &[
            ("tier", "Weight of the process: 0 quick fix, 1 small feature, 2 medium, 3 complex, 4 enterprise."),
            ("goal", "When a review is resolved: zero-open (no open findings) or critical-only (no critical ones)."),
            ("approve", "Whether you approve each patch before it is applied: never or each."),
            (
                "verify",
                "Commands that must pass before a fix is applied, e.g. [\"make test\"]. They run in a workspace.",
            ),
        ],
    },
    SettingsBlock {
        section: "agents",
        setting_docs: &[
            ("use", "Agents to use, e.g. [claude-code, codex]. Default: the first client that is signed in."),
            ("at_once", "Maximum number of agents working at the same time."),
        ],
    },
    SettingsBlock {
        section: "limits",
        setting_docs: &[
            ("max_review_rounds", "Maximum number of rounds of a review."),
            ("max_fix_iterations", "Maximum number of attempts to fix the findings of one round."),
            ("max_runtime_minutes", "Maximum runtime of a run in minutes; time spent waiting for you does not count."),
            ("max_cost", "Maximum cost of a run in dollars, as far as agents report it."),
        ],
    },
    SettingsBlock {
        section: "tasks",
        setting_docs: &[
            ("required_issues", "Findings expected of a reviewer in round 1; with fewer, it is asked once more."),
            ("reviewer_timeout", "Timeout of a reviewer in seconds."),
            ("fixer_timeout", "Timeout of a fixer in seconds."),
        ],
    },
];

pub(super) fn plan_settings_file(
    init_plan: &mut InitPlan,
    arguments: &InitArguments,
    project: &Project,
) -> Result<(), UserError> {
    let SettingsFileChoice { file_name: settings_file, ignored_name } = SettingsFileChoice::from_root(project.root());
    if let Some(ignored_name) = ignored_name {
        init_plan.warnings.push(settings::describe_ignored_file(settings_file, ignored_name));
    }
    let old_text = read_project_file(project, settings_file)?;
    match (&old_text, arguments.profile) {
        (None, profile) => {
            init_plan.edits.push(FileEdit {
                relative_path: settings_file.to_string(),
                old_text: None,
                new_text: Some(render_settings_file(profile)),
            });
        }
        // An existing file needs no note, unless the user asked for a profile that has no effect on it.
        (Some(_), None) => {}
        (Some(_), Some(profile)) => {
            let values: Vec<String> =
                profile.preset_values().iter().map(|(setting_path, value)| format!("{setting_path}={value}")).collect();
            init_plan.notes.push(format!(
                "{settings_file} exists and is not changed; the profile {} would set {}",
                profile.as_str(),
                values.join(", ")
            ));
        }
    }
    Ok(())
}

/// Renders the file. Settings of the profile are active, all others are commented out with their default.
fn render_settings_file(profile: Option<ReviewProfile>) -> String {
    let mut rendered = format!(
        "# Tribunal settings for this project{}. Commented-out settings show the defaults.\n\
         # Show the effective settings and where they come from: tribunal inspect settings\n\
         # Show all available settings: tribunal schema settings\n",
        profile.map_or_else(String::new, |profile| format!(" (profile {})", profile.as_str()))
    );
    for block in &SETTINGS_BLOCKS {
        rendered.push('\n');
        // A block without a name has top-level settings.
        let indent = if block.section.is_empty() { "" } else { "  " };
        if !block.section.is_empty() {
            rendered.push_str(&format!("{}:\n", block.section));
        }
        for (setting_name, description) in block.setting_docs {
            let setting_path = if block.section.is_empty() {
                setting_name.to_string()
            } else {
                format!("{}.{setting_name}", block.section)
            };
            // A profile overrides few settings; the file shows all of them, so that it can serve as a reference.
            let preset = profile.map(ReviewProfile::preset_values).unwrap_or_default();
            let setting_line = match preset.iter().find(|(preset_path, _)| *preset_path == setting_path) {
                Some((_, value)) => format!("{setting_name}: {value}"),
                // The only setting without a default is a list.
                None => format!("#{setting_name}: {}", default_as_written(&setting_path).as_deref().unwrap_or("[]")),
            };
            rendered.push_str(&format!("{indent}# {description}\n{indent}{setting_line}\n"));
        }
    }
    rendered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{EffectiveSettings, ReadMode, SETTINGS_FILE};

    const PROFILES: [Option<ReviewProfile>; 5] = [
        None,
        Some(ReviewProfile::Solo),
        Some(ReviewProfile::Team),
        Some(ReviewProfile::Enterprise),
        Some(ReviewProfile::QuickFix),
    ];

    #[test]
    fn what_is_written_is_what_is_read() {
        for profile in PROFILES {
            let parsed_file =
                crate::settings::read_settings(SETTINGS_FILE, &render_settings_file(profile), ReadMode::Strict);
            assert!(parsed_file.problems.is_empty(), "{:?}", parsed_file.problems);
            let found_paths: Vec<&str> =
                parsed_file.settings.iter().map(|found_setting| found_setting.canonical_path.as_str()).collect();
            let preset = profile.map(ReviewProfile::preset_values).unwrap_or_default();
            assert_eq!(found_paths, preset.iter().map(|(path, _)| *path).collect::<Vec<_>>());
        }
        insta::assert_snapshot!(render_settings_file(Some(ReviewProfile::QuickFix)));
    }

    #[test]
    fn commented_out_settings_are_valid_and_have_the_default_value() {
        let lines: Vec<String> = render_settings_file(None)
            .lines()
            .map(|line| {
                let trimmed = line.trim_start();
                let is_setting = trimmed.starts_with('#') && !trimmed.starts_with("# ");
                if is_setting { line.replacen('#', "", 1) } else { line.to_string() }
            })
            .collect();
        let parsed_file = crate::settings::read_settings(SETTINGS_FILE, &lines.join("\n"), ReadMode::Strict);
        assert!(parsed_file.problems.is_empty(), "{:?}", parsed_file.problems);
        let count: usize = SETTINGS_BLOCKS.iter().map(|block| block.setting_docs.len()).sum();
        assert_eq!(parsed_file.settings.len(), count);
        let defaults = EffectiveSettings::from_defaults();
        for found_setting in parsed_file.settings {
            let expected = defaults.value_at(&found_setting.canonical_path);
            assert!(
                expected == Some(&found_setting.setting_value) || found_setting.canonical_path == "agents.use",
                "{}: {expected:?}",
                found_setting.canonical_path
            );
        }
    }
}

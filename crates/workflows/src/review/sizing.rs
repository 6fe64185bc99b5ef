//! The model size that a task of a review is worth: one table.
//!
//! | tier | as a rule | after an escalation |
//! | --- | --- | --- |
//! | 0 | small | medium |
//! | 1 | small | medium |
//! | 2 | medium | large |
//! | 3 | medium | large |
//! | 4 | large | large |
//!
//! An adversarial reviewer, a party and everything about an architecture document is large at every tier. An easy
//! follow-up is one size smaller than it would be, never smaller than small; nothing is easy after an escalation. This
//! module decides neither which model a size stands for nor whether a configured model is used.

use crate::{
    findings::{agent_role::AgentRole, finding::Severity, subject::Subject},
    tasks::{brief::ReviewBrief, client::ModelSize},
};
use tribunal_engine::tier::ProcessTier;

/// Returns the model size for a task. A repair is easy if all its findings have low severity.
pub(super) fn task_size(tier: ProcessTier, brief: &ReviewBrief, is_escalated: bool) -> ModelSize {
    let is_minor = brief.assigned.iter().all(|finding| finding.severity == Severity::Low);
    let is_easy = brief.role == AgentRole::Fixer && is_minor;
    model_size(tier, brief.role, &brief.subject, is_escalated, is_easy)
}

/// Returns the model size for a task. `is_escalated`: it was tried before without success. `is_easy`: little can go wrong
/// in it.
fn model_size(tier: ProcessTier, role: AgentRole, subject: &Subject, is_escalated: bool, is_easy: bool) -> ModelSize {
    let is_always_large = matches!(role, AgentRole::Adversarial | AgentRole::Party) || is_architecture(subject);
    let base_size = match tier.number() {
        // This is checked first: these tasks get a large model even at tier 0.
        _ if is_always_large => ModelSize::Large,
        0 | 1 => ModelSize::Small,
        2 | 3 => ModelSize::Medium,
        _ => ModelSize::Large,
    };
    match (is_escalated, is_easy) {
        // A task that failed before is not easy any more.
        (true, _) => larger_size(base_size),
        (false, true) => smaller_size(base_size),
        (false, false) => base_size,
    }
}

fn larger_size(base_size: ModelSize) -> ModelSize {
    if base_size == ModelSize::Small { ModelSize::Medium } else { ModelSize::Large }
}

fn smaller_size(base_size: ModelSize) -> ModelSize {
    if base_size == ModelSize::Large { ModelSize::Medium } else { ModelSize::Small }
}

/// Whether the subject is an architecture document by its name or by that of a directory: the parts of a sharded document are
/// in such a directory.
fn is_architecture(subject: &Subject) -> bool {
    let names_architecture = |path_part: &str| {
        // Whole words only: `architectures.md` is something else.
        path_part
            .split(|character: char| !character.is_ascii_alphanumeric())
            .any(|word| word.eq_ignore_ascii_case("architecture"))
    };
    subject.is_document() && subject.file_path().is_some_and(|path| path.split('/').any(names_architecture))
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String, vec::Vec};

    use super::*;

    /// The rows of the table above.
    fn table_rows() -> Vec<[String; 3]> {
        let rows = include_str!("sizing.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
        let cells = rows.map(|row| row.trim_end_matches(" |").split(" | ").map(String::from).collect::<Vec<_>>());
        cells
            .filter(|cells| cells[0].parse::<u8>().is_ok())
            .map(|cells| <[String; 3]>::try_from(cells).unwrap())
            .collect()
    }

    fn size_text(tier: u8, role: AgentRole, subject: &Subject, is_escalated: bool, is_easy: bool) -> String {
        format!("{}", model_size(ProcessTier::new(tier).unwrap(), role, subject, is_escalated, is_easy))
    }

    #[test]
    fn the_table_holds() {
        let plan = Subject::from_path("docs/plan.md", None);
        let rows = table_rows();
        assert_eq!(rows.len(), 5);
        for (tier, [row_number, usual_size, escalated_size]) in (0u8..).zip(rows) {
            assert_eq!(format!("{tier}"), row_number);
            for role in
                [AgentRole::Fixer, AgentRole::Elicitation, AgentRole::Challenger, AgentRole::Spec, AgentRole::Quality]
            {
                assert_eq!(size_text(tier, role, &plan, false, false), usual_size, "{tier} {role}");
                for easy in [false, true] {
                    assert_eq!(size_text(tier, role, &plan, true, easy), escalated_size, "{tier} {role}");
                }
            }
        }
    }

    #[test]
    fn some_work_is_large_at_every_tier_and_an_easy_follow_up_is_one_smaller() {
        let plan = Subject::from_path("docs/plan.md", None);
        for tier in 0..=4 {
            for role in [AgentRole::Adversarial, AgentRole::Party] {
                assert_eq!(size_text(tier, role, &plan, false, false), "large");
            }
            for path in ["docs/architecture.md", "out/Architecture/intro.md", "x-architecture-v2.md"] {
                let subject = Subject::from_path(path, None);
                assert_eq!(size_text(tier, AgentRole::Fixer, &subject, false, false), "large", "{path}");
                assert_eq!(size_text(tier, AgentRole::Fixer, &subject, false, true), "medium", "{path}");
            }
        }
        let easy = |tier| size_text(tier, AgentRole::Fixer, &plan, false, true);
        assert_eq!((0..=4).map(easy).collect::<Vec<_>>(), ["small", "small", "small", "small", "medium"]);
        for subject in
            [Subject::from_path("src/architecture.rs", None), Subject::from_path("docs/architectures.md", None)]
        {
            assert_eq!(size_text(2, AgentRole::Fixer, &subject, false, false), "medium");
        }
    }
}

//! The model size that a task is worth: one table.
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
    client::Size,
    level::{Role, Tier},
    subject::Subject,
};

/// Returns the model size for a task. `escalated`: it was tried before without success. `easy`: little can go wrong in it.
pub fn size(tier: Tier, role: Role, subject: &Subject, escalated: bool, easy: bool) -> Size {
    let raised = matches!(role, Role::Adversarial | Role::Party) || is_architecture(subject);
    let plain = match tier.number() {
        // Checked first: these tasks need a large model even at tier 0.
        _ if raised => Size::Large,
        0 | 1 => Size::Small,
        2 | 3 => Size::Medium,
        _ => Size::Large,
    };
    match (escalated, easy) {
        // A task that failed before is not easy any more.
        (true, _) => up(plain),
        (false, true) => down(plain),
        (false, false) => plain,
    }
}

fn up(size: Size) -> Size {
    if size == Size::Small { Size::Medium } else { Size::Large }
}

fn down(size: Size) -> Size {
    if size == Size::Large { Size::Medium } else { Size::Small }
}

/// Whether a document or one of its directories is named so: the parts of a sharded document are in such a directory.
fn is_architecture(subject: &Subject) -> bool {
    let is_word = |part: &str| {
        // Whole words only: `architectures.md` is something else.
        part.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case("architecture"))
    };
    subject.is_document() && subject.path().is_some_and(|path| path.split('/').any(is_word))
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String, vec::Vec};

    use super::*;

    /// The rows of the table above.
    fn table() -> Vec<[String; 3]> {
        let rows = include_str!("sizing.rs").lines().filter_map(|line| line.strip_prefix("//! | "));
        let cells =
            rows.map(|row| row.trim_end_matches(" |").split(" | ").map(String::from).collect::<Vec<_>>());
        cells
            .filter(|cells| cells[0].parse::<u8>().is_ok())
            .map(|cells| <[String; 3]>::try_from(cells).unwrap())
            .collect()
    }

    fn of(tier: u8, role: Role, subject: &Subject, escalated: bool, easy: bool) -> String {
        format!("{}", size(Tier::new(tier).unwrap(), role, subject, escalated, easy))
    }

    #[test]
    fn the_table_holds() {
        let plan = Subject::at("docs/plan.md", None);
        let rows = table();
        assert_eq!(rows.len(), 5);
        for (tier, [number, rule, escalated]) in (0u8..).zip(rows) {
            assert_eq!(format!("{tier}"), number);
            for role in [Role::Fixer, Role::Elicitation, Role::Challenger, Role::Spec, Role::Quality] {
                assert_eq!(of(tier, role, &plan, false, false), rule, "{tier} {role}");
                for easy in [false, true] {
                    assert_eq!(of(tier, role, &plan, true, easy), escalated, "{tier} {role}");
                }
            }
        }
    }

    #[test]
    fn some_work_is_large_at_every_tier_and_an_easy_follow_up_is_one_smaller() {
        let plan = Subject::at("docs/plan.md", None);
        for tier in 0..=4 {
            for role in [Role::Adversarial, Role::Party] {
                assert_eq!(of(tier, role, &plan, false, false), "large");
            }
            for path in ["docs/architecture.md", "out/Architecture/intro.md", "x-architecture-v2.md"] {
                let subject = Subject::at(path, None);
                assert_eq!(of(tier, Role::Fixer, &subject, false, false), "large", "{path}");
                assert_eq!(of(tier, Role::Fixer, &subject, false, true), "medium", "{path}");
            }
        }
        let easy = |tier| of(tier, Role::Fixer, &plan, false, true);
        assert_eq!((0..=4).map(easy).collect::<Vec<_>>(), ["small", "small", "small", "small", "medium"]);
        for subject in [Subject::at("src/architecture.rs", None), Subject::at("docs/architectures.md", None)]
        {
            assert_eq!(of(2, Role::Fixer, &subject, false, false), "medium");
        }
    }
}

//! Finds what a story has lost of that by which its work is measured: criteria, tasks, their numbers, and what its front matter says.

use tribunal_bmad::story::{self, Story, StoryTask};
use tribunal_workflows::development::concerns::{Additions, LandingConcern, find_removed};

use crate::masking::Masker;

/// Compares a story with what it was before the work.
pub(super) fn find_story_losses(path: &str, base_text: &str, work_text: &str, masker: &Masker) -> Vec<LandingConcern> {
    let (base, work) = (story::read_story(path, base_text), story::read_story(path, work_text));
    let mask = |text: String| masker.mask(&text).into_owned();
    let criteria = |story: &Story| -> Vec<String> { story.criteria.iter().map(|item| item.text.clone()).collect() };
    let tasks = |story: &Story| {
        let mut texts = Vec::new();
        collect_texts(&story.tasks, &mut texts);
        texts
    };
    let removed_criteria = find_removed_texts(&criteria(&base), &criteria(&work), Additions::Refused).into_iter();
    let removed_tasks = find_removed_texts(&tasks(&base), &tasks(&work), Additions::Accepted).into_iter();
    removed_criteria
        .map(|text| LandingConcern::RemovedCriterion { text: mask(text) })
        .chain(removed_tasks.map(|text| LandingConcern::RemovedTask { text: mask(text) }))
        .chain(list_changed_measures(&base, &work, work_text).into_iter().map(
            |ChangedMeasure { what, before, after }| LandingConcern::ChangedMeasure {
                what: mask(what),
                before: mask(before),
                after: mask(after),
            },
        ))
        .collect()
}

struct ChangedMeasure {
    what: String,
    before: String,
    after: String,
}

/// Lists criteria whose number is another one, and fields of the front matter that changed.
fn list_changed_measures(base: &Story, work: &Story, work_text: &str) -> Vec<ChangedMeasure> {
    // Tests name criteria by their numbers.
    let renumbered = base.criteria.iter().filter_map(|criterion| {
        let mut same_texts = work.criteria.iter().filter(|new| new.text == criterion.text).peekable();
        let new = *same_texts.peek()?;
        let is_kept = same_texts.any(|new| new.number == criterion.number);
        (!is_kept).then(|| ChangedMeasure {
            what: format!("the number of the criterion \"{}\"", criterion.text),
            before: criterion.number.to_string(),
            after: new.number.to_string(),
        })
    });
    let has_lost = |before: &[String], after: &[String]| before.iter().any(|item| !after.contains(item));
    let (old, new) = (&base.links, &work.links);
    // Another item that is closed would be taken off the list of what is owed.
    let fields = [
        ("`depends_on`", &old.depends_on, &new.depends_on, has_lost(&old.depends_on, &new.depends_on)),
        (
            "`closes_deferred`",
            &old.closes_deferred,
            &new.closes_deferred,
            has_lost(&old.closes_deferred, &new.closes_deferred)
                || has_lost(&new.closes_deferred, &old.closes_deferred),
        ),
        (
            "the operator actions",
            &old.operator_actions,
            &new.operator_actions,
            // One that is ticked is still owed: an agent cannot have done it.
            old.operator_actions.iter().any(|action| !work_text.contains(action.as_str())),
        ),
    ];
    let changed_fields =
        fields.into_iter().filter(|(_, _, _, is_changed)| *is_changed).map(|(what, before, after, _)| ChangedMeasure {
            what: what.to_string(),
            before: before.join(", "),
            after: after.join(", "),
        });
    renumbered.chain(changed_fields).collect()
}

fn find_removed_texts(before: &[String], after: &[String], additions: Additions) -> Vec<String> {
    let after: Vec<&str> = after.iter().map(String::as_str).collect();
    find_removed(before.iter().map(String::as_str), &after, additions)
}

fn collect_texts(tasks: &[StoryTask], texts: &mut Vec<String>) {
    for task in tasks {
        texts.push(task.text.clone());
        collect_texts(&task.subtasks, texts);
    }
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::development::concerns::describe_concerns;

    use super::*;

    const STORY: &str = "---\ndepends_on: [1-1]\ncloses_deferred: [DW-1]\noperator_actions:\n  - buy the domain\n---\n# Story 1.2: Sift\n\n\
                         ## Acceptance Criteria\n\n1. Bran is removed.\n2. Flour is kept.\n\n## Tasks / Subtasks\n\n- [ ] Sift\n";

    fn describe(change: impl FnOnce(&str) -> String) -> Option<String> {
        let concerns = find_story_losses("1-2-sift.md", STORY, &change(STORY), &Masker::new([]));
        (!concerns.is_empty()).then(|| describe_concerns(&concerns))
    }

    #[test]
    fn ticks_and_additions_are_no_losses() {
        assert_eq!(describe(|story| story.replace("- [ ] Sift", "- [x] Sift\n- [x] Clean up")), None);
        assert_eq!(describe(|story| story.replace("kept.\n", "kept.\n3. Sacks are tied.\n")), None);
        assert_eq!(describe(|story| story.replace("[1-1]", "[1-1, 1-3]")), None);
        let owing = STORY.replace("## Tasks", "## Operator Actions\n\n- [ ] Buy a key\n\n## Tasks");
        let ticked = owing.replace("- [ ] Buy", "- [x] Buy");
        assert_eq!(find_story_losses("1-2-sift.md", &owing, &ticked, &Masker::new([])), []);
        assert_eq!(describe(|story| story.replace("the domain\n", "the domain\n  - rotate the key\n")), None);
    }

    #[test]
    fn what_measures_the_work_is_named_when_it_changes() {
        type Change = (&'static str, &'static str, &'static str);
        let cases: [Change; 5] = [
            ("[1-1]", "[]", "the work changes `depends_on` of its story from \"1-1\" to nothing"),
            (
                "[DW-1]",
                "[DW-1, DW-2]",
                "the work changes `closes_deferred` of its story from \"DW-1\" to \"DW-1, DW-2\"",
            ),
            (
                "  - buy the domain",
                "  - look at it",
                "the work changes the operator actions of its story from \"buy the domain\" to \"look at it\"",
            ),
            ("2. Flour is kept.", "", "the work removes the criterion \"Flour is kept.\" from its story"),
            ("- [ ] Sift", "- [ ] Rest", "the work removes the task \"Sift\" from its story"),
        ];
        for (old, new, expected) in cases {
            assert_eq!(describe(|story| story.replace(old, new)).as_deref(), Some(expected));
        }
        let swapped = describe(|story| {
            story.replace("1. Bran is removed.\n2. Flour is kept.", "1. Flour is kept.\n2. Bran is removed.")
        });
        let expected = "the work changes the number of the criterion \"Bran is removed.\" of its story from \"1\" to \"2\"; changes the \
                        number of the criterion \"Flour is kept.\" of its story from \"2\" to \"1\"";
        assert_eq!(swapped.as_deref(), Some(expected));
    }
}

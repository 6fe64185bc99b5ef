//! Finds what a story has lost of that by which its work is measured: criteria, tasks, their numbers, what earlier work left, and what its
//! front matter says.

use tribunal_bmad::{
    states::StoryStatus,
    story::{self, Story, StoryTask},
};
use tribunal_workflows::development::concerns::{Additions, LandingConcern, find_removed};

use crate::masking::Masker;

/// The least digits of the name of a commit.
const MIN_COMMIT_DIGITS: usize = 7;

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
    let changed_measures = list_changed_measures(&base, &work, work_text)
        .into_iter()
        .chain(list_lost_leftovers(&base, &work, work_text))
        .chain(find_other_baseline(&base, &work))
        .chain(list_changed_limits(base_text, work_text));
    removed_criteria
        .map(|text| LandingConcern::RemovedCriterion { text: mask(text) })
        .chain(removed_tasks.map(|text| LandingConcern::RemovedTask { text: mask(text) }))
        .chain(changed_measures.map(|ChangedMeasure { what, before, after }| LandingConcern::ChangedMeasure {
            what: mask(what),
            before: mask(before),
            after: mask(after),
        }))
        .collect()
}

struct ChangedMeasure {
    what: String,
    before: String,
    after: String,
}

/// Lists criteria whose number is another one, and links of the story that changed.
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
    // Where a story says nothing, the plan says what it depends on, or the order of its epic. An empty list takes their place.
    let said_nothing = old.depends_on.is_empty() && !old.depends_on_nothing;
    let replaced_plan = (said_nothing && new.depends_on_nothing).then(|| ChangedMeasure {
        what: "`depends_on`".to_string(),
        before: String::new(),
        after: "[]".to_string(),
    });
    renumbered.chain(changed_fields).chain(replaced_plan).collect()
}

/// Lists what earlier work and its reviews left to do, and the story does not say any more: no one else knows that it is owed.
fn list_lost_leftovers(base: &Story, work: &Story, work_text: &str) -> Vec<ChangedMeasure> {
    // These go into the ledger as the story names them when it lands.
    let (deferred_before, deferred_after) = (describe_deferred(base), describe_deferred(work));
    let is_deferred_lost = !find_removed_texts(&deferred_before, &deferred_after, Additions::Accepted).is_empty();
    let deferred = is_deferred_lost.then(|| ChangedMeasure {
        what: "`deferred`".to_string(),
        before: deferred_before.join(", "),
        after: deferred_after.join(", "),
    });
    // Agents tick these, or write beside them what they did. One whose text is gone was perhaps never looked at.
    let open_before: Vec<String> = base.open_follow_ups().map(|item| item.text.clone()).collect();
    let lost_follow_ups = find_removed_texts(&open_before, &[work_text.to_string()], Additions::Accepted);
    let follow_ups = (!lost_follow_ups.is_empty()).then(|| ChangedMeasure {
        what: "the review follow-ups".to_string(),
        before: lost_follow_ups.join(", "),
        after: String::new(),
    });
    deferred.into_iter().chain(follow_ups).collect()
}

/// Describes what a story leaves for later, with the severities.
fn describe_deferred(story: &Story) -> Vec<String> {
    let describe_item = |text: &String| match story.links.deferred_severities.get(text) {
        Some(severity) => format!("{text} ({severity})"),
        None => text.clone(),
    };
    story.links.deferred.iter().map(describe_item).collect()
}

/// Finds that a story whose work waits for its review names another commit with which that work began. A later run would verify and
/// review the changes since then as the work of the story. A story that is developed anew may also begin anew.
fn find_other_baseline(base: &Story, work: &Story) -> Option<ChangedMeasure> {
    let is_developed = base.status.as_ref().is_some_and(|status| status.status >= Some(StoryStatus::Review));
    // Where there is no git, workflows write `NO_VCS`.
    let before = base.baseline.as_deref().filter(|before| is_developed && is_commit_name(before))?;
    let after = work.baseline.as_deref().unwrap_or_default();
    // One of them may be abbreviated.
    let is_same = is_commit_name(after) && (before.starts_with(after) || after.starts_with(before));
    (!is_same).then(|| ChangedMeasure {
        what: "the baseline commit".to_string(),
        before: before.to_string(),
        after: after.to_string(),
    })
}

fn is_commit_name(text: &str) -> bool {
    text.len() >= MIN_COMMIT_DIGITS && text.chars().all(|character| character.is_ascii_hexdigit())
}

/// Lists checkpoints and budgets of the front matter that are not as they were. New ones only limit agents more.
fn list_changed_limits(base_text: &str, work_text: &str) -> Vec<ChangedMeasure> {
    let mut work_limits = story::read_limits(work_text);
    let changed = story::read_limits(base_text).into_iter().filter_map(|(name, before)| {
        let after = work_limits.remove(&name).unwrap_or_default();
        (after != before).then(|| ChangedMeasure { what: format!("`{name}`"), before, after })
    });
    changed.collect()
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

    const REVIEWED_STORY: &str = "---\nbaseline_commit: 0123456789abcdef\ndeferred:\n  - {summary: a slow mill, severity: high}\n---\n\
                                  # Story 1.2: Sift\n\nStatus: review\n\n## Acceptance Criteria\n\n1. Bran is removed.\n\n\
                                  ## Tasks / Subtasks\n\n- [x] Sift\n\n### Review Follow-ups (AI)\n\n\
                                  - [ ] [AI-Review][High] Count the sacks [src/a.rs:3]\n";

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

    fn compare(base_text: &str, work_text: &str) -> Option<String> {
        let concerns = find_story_losses("1-2-sift.md", base_text, work_text, &Masker::new([]));
        (!concerns.is_empty()).then(|| describe_concerns(&concerns))
    }

    #[test]
    fn checkpoints_and_budgets_stay_as_they_were() {
        let limited = STORY.replacen("---\n", "---\ndone_checkpoint: true\nmax_cost: 5\n", 1);
        assert_eq!(compare(STORY, &limited), None);
        assert_eq!(compare(&limited, &limited.replace("- [ ] Sift", "- [x] Sift")), None);
        let expected = "the work changes `done_checkpoint` of its story from \"true\" to \"false\"; changes `max_cost` of its story from \
                        \"5\" to nothing";
        let loosened = limited.replace("checkpoint: true", "checkpoint: false").replace("max_cost: 5\n", "");
        assert_eq!(compare(&limited, &loosened).as_deref(), Some(expected));
    }

    #[test]
    fn a_story_does_not_drop_what_the_plan_says_that_it_depends_on() {
        let silent = STORY.replace("depends_on: [1-1]\n", "");
        let expected = "the work changes `depends_on` of its story from nothing to \"[]\"";
        assert_eq!(compare(&silent, &STORY.replace("[1-1]", "[]")).as_deref(), Some(expected));
        assert_eq!(compare(&silent, STORY), None);
        let independent = STORY.replace("[1-1]", "[]");
        assert_eq!(compare(&independent, &independent), None);
    }

    #[test]
    fn what_earlier_work_left_stays_known() {
        type Change = (&'static str, &'static str, Option<&'static str>);
        let changes: [Change; 9] = [
            ("- [ ] [AI", "- [x] [AI", None),
            ("- [ ] [AI-Review][High] Count the sacks [src/a.rs:3]", "- Resolved: count the sacks", None),
            (
                "- [ ] [AI-Review][High] Count the sacks [src/a.rs:3]\n",
                "",
                Some("the work changes the review follow-ups of its story from \"Count the sacks\" to nothing"),
            ),
            ("severity: high}", "severity: high}\n  - a new one", None),
            (
                "severity: high",
                "severity: low",
                Some("the work changes `deferred` of its story from \"a slow mill (high)\" to \"a slow mill (low)\""),
            ),
            (
                "deferred:\n  - {summary: a slow mill, severity: high}\n",
                "",
                Some("the work changes `deferred` of its story from \"a slow mill (high)\" to nothing"),
            ),
            ("0123456789abcdef", "01234567", None),
            (
                "0123456789abcdef",
                "fedcba98",
                Some("the work changes the baseline commit of its story from \"0123456789abcdef\" to \"fedcba98\""),
            ),
            (
                "baseline_commit: 0123456789abcdef\n",
                "",
                Some("the work changes the baseline commit of its story from \"0123456789abcdef\" to nothing"),
            ),
        ];
        for (old, new, expected) in changes {
            let work_text = REVIEWED_STORY.replace(old, new);
            assert_eq!(compare(REVIEWED_STORY, &work_text).as_deref(), expected, "{old} -> {new}");
        }
        let begun = REVIEWED_STORY.replace("Status: review", "Status: in-progress");
        assert_eq!(compare(&begun, &begun.replace("0123456789abcdef", "fedcba98")), None);
        let without_git = REVIEWED_STORY.replace("0123456789abcdef", "NO_VCS");
        assert_eq!(compare(&without_git, REVIEWED_STORY), None);
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

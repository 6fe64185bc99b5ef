//! What an edit must keep: every line but those it names, byte by byte; of a status all but its word.

use tribunal_bmad::{
    deferred_work::{self, LedgerClosing, NewDeferredItem},
    states::{StateMeaning, StoryStatus},
    story::{
        self, FollowUpKind, ReviewDialect, StoryTask,
        edit::{self, NewFollowUp},
    },
};

/// Every change of a story's file.
pub(crate) fn story(text: &str) {
    let before = story::read_story("1-2-x.md", text);
    for to in StoryStatus::ALL {
        let Ok(new) = edit::set_status(text, to) else { continue };
        assert!(is_only_the_word(text, &new, to), "{text:?} became {new:?}");
        assert_eq!(edit::set_status(&new, to).as_deref(), Ok(new.as_str()));
    }
    for task in before.tasks.iter().take(4) {
        ticked(text, task);
    }
    for item in before.follow_ups.iter().take(4) {
        let _ = edit::tick_follow_up(text, item.line, !item.done);
    }
    if let Ok(new) = edit::add_files(text, &["src/new.rs", "Makefile", "a b.rs"]) {
        assert!(is_longer(text, &new), "{text:?} became {new:?}");
        assert_eq!(edit::add_files(&new, &["src/new.rs", "Makefile", "a b.rs"]).as_deref(), Ok(new.as_str()));
    }
    let actions = ["Buy the domain".to_string(), text.chars().take(60).collect()];
    if let Ok(new) = edit::confirm_actions(text, &actions, "2026-01-02") {
        assert_eq!(edit::confirm_actions(&new, &actions, "2026-01-03").as_deref(), Ok(new.as_str()));
    }
    let item = |text: &str, place: Option<&str>| NewFollowUp {
        kind: FollowUpKind::Patch,
        text: text.to_string(),
        place: place.map(str::to_string),
        done: false,
    };
    let own: String = text.chars().take(60).collect();
    let items = [item("drops `<!--` here", Some("Makefile:2")), item(&own, Some(&own)), item("x <!--", None)];
    for dialect in [ReviewDialect::AiReview, ReviewDialect::Findings] {
        for item in &items {
            let Ok(new) = edit::add_follow_ups(text, dialect, std::slice::from_ref(item)) else { continue };
            assert!(is_longer(text, &new), "{text:?} became {new:?}");
            let after = story::read_story("1-2-x.md", &new);
            assert_eq!(after.task_progress(), before.task_progress());
        }
    }
}

fn ticked(text: &str, task: &StoryTask) {
    let Ok(new) = edit::tick_task(text, &task.id, !task.done) else { return };
    let line = |text: &str| text.split('\n').count();
    assert_eq!(line(text), line(&new), "a tick added or removed a line");
    let changed = text.split('\n').zip(new.split('\n')).enumerate().filter(|(_, (old, new))| old != new);
    assert!(changed.map(|(at, _)| at + 1).eq([task.line]), "a tick changed another line");
    task.subtasks.iter().take(2).for_each(|sub| ticked(text, sub));
}

/// What is deferred goes behind what is there, or below the heading of its story.
pub(crate) fn ledger(text: &str) {
    let _ = deferred_work::read_ledger(text);
    let own: String = text.chars().take(60).collect();
    let items = [
        NewDeferredItem {
            source: "spec-1-2-x.md".into(),
            summary: "later".into(),
            evidence: own.clone(),
            severity: "low".into(),
            place: own.clone(),
        },
        NewDeferredItem {
            source: own.clone(),
            summary: own.clone(),
            evidence: String::new(),
            severity: own.clone(),
            place: String::new(),
        },
    ];
    let new = deferred_work::add_items(text, &items);
    let mut new_lines = new.split('\n').map(|line| line.trim_end_matches('\r'));
    let is_kept = |line: &str| new_lines.any(|new_line| new_line == line.trim_end_matches('\r'));
    assert!(text.split('\n').all(is_kept), "{text:?} became {new:?}");
    let _ = deferred_work::read_ledger(&new);
    closed(text, &own);
}

/// Closing keeps every item, and only those that were asked for are done.
fn closed(text: &str, own: &str) {
    let before = deferred_work::read_ledger(text).items;
    let ids: Vec<String> = before.iter().filter_map(|item| item.id.clone()).step_by(2).take(4).collect();
    let closing = LedgerClosing { date: "2026-01-02".into(), resolution: own.to_string() };
    let closed = deferred_work::close_items(text, &ids, &closing);
    let after = deferred_work::read_ledger(&closed.ledger_text).items;
    assert_eq!(before.len(), after.len(), "{text:?} became {:?}", closed.ledger_text);
    for (old, new) in before.iter().zip(&after) {
        let is_closed = old.id.as_ref().is_some_and(|id| closed.closed.contains(id));
        assert!(new.done == old.done || is_closed, "{text:?} became {:?}", closed.ledger_text);
    }
    assert_eq!(deferred_work::close_items(&closed.ledger_text, &ids, &closing).ledger_text, closed.ledger_text);
}

/// The old bytes are all there, in their order, around one piece that is new.
fn is_longer(old: &str, new: &str) -> bool {
    let (old, new) = (old.as_bytes(), new.as_bytes());
    let head = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(one, other)| one == other).count();
    head + tail >= old.len()
}

/// Each line is as it was but for one word, which was a status; or all is as it was, and something is new.
fn is_only_the_word(old: &str, new: &str, to: StoryStatus) -> bool {
    // A spec's front matter has words of its own.
    let own = [to.as_str(), tribunal_bmad::specs::SpecStatus::from(to).as_str()];
    let is_word = |was: &str| StateMeaning::parse(was).is_some() || was.eq_ignore_ascii_case("draft");
    let exchanged = |old: &str, new: &str| {
        own.iter().any(|word| {
            new.match_indices(word).any(|(at, _)| {
                let was = old.strip_prefix(&new[..at]).and_then(|old| old.strip_suffix(&new[at + word.len()..]));
                // Where nothing was said, a word and a space are new.
                was.is_some_and(is_word) || is_longer(old, new)
            })
        })
    };
    is_longer(old, new)
        || (old.split('\n').count() == new.split('\n').count()
            && old.split('\n').zip(new.split('\n')).all(|(old, new)| old == new || exchanged(old, new)))
}

/// Every line but these is as it was.
pub(crate) fn only_these_lines(before: &str, after: &str, lines: &[usize]) {
    let (old, new): (Vec<&str>, Vec<&str>) = (cut(before), cut(after));
    assert_eq!(old.len(), new.len(), "an edit added or removed a line");
    for (at, (old, new)) in old.iter().zip(&new).enumerate() {
        assert!(old == new || lines.contains(&(at + 1)), "line {}: {old:?} became {new:?}", at + 1);
    }
}

/// YAML ends a line at a lone carriage return, too, and counts it.
fn cut(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['\n', '\r']) {
        let end = if rest[at..].starts_with("\r\n") { at + 2 } else { at + 1 };
        lines.push(&rest[..end]);
        rest = &rest[end..];
    }
    lines.push(rest);
    lines
}

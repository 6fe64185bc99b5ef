//! The states of epics, stories and retrospectives, and the words that BMAD's versions and users have for them.
//!
//! A state is written as BMAD writes it today. Every other word is only read: it is kept where it stands, and
//! [`StateMeaning`] says what it means. A remark behind the word does not matter: `done (merged)`, `✅ Completed`.

use std::{fmt, ops::Range};

use tribunal_json::{Serialize, schemars};

/// The states of a story, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoryStatus {
    Backlog,
    ReadyForDev,
    InProgress,
    Review,
    Done,
}

/// The states of an epic, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EpicStatus {
    Backlog,
    InProgress,
    Done,
}

/// The states of a retrospective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetroStatus {
    Optional,
    Done,
}

/// Why no work is done on an entry. BMAD has no such states; users write them all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ParkedState {
    /// It waits for something.
    Blocked,
    /// It will be done later.
    Deferred,
    /// It will not be done: it was cancelled, split or replaced.
    Dropped,
}

/// What a word means as a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMeaning {
    Backlog,
    Ready,
    /// The context of an epic, or of a story, is written.
    Contexted,
    InProgress,
    Review,
    Done,
    Optional,
    Parked(ParkedState),
}

use StateMeaning::{Backlog, Contexted, Done, InProgress, Optional, Parked, Ready, Review};

/// The words for states, with `-` for every space and underscore.
#[rustfmt::skip]
const STATE_WORDS: &[(StateMeaning, &[&str])] = &[
    (
        Backlog,
        &[
            "backlog", "todo", "to-do", "pending", "planned", "planning", "not-started", "notstarted", "new", "identified",
            "proposed", "queued", "unstarted", "open", "待办", "待开始", "未开始", "未着手", "à-faire", "pendiente", "pendente",
            "offen", "geplant", "запланировано",
        ],
    ),
    (
        Ready,
        &[
            "ready-for-dev", "ready-for-development", "ready-for-implementation", "ready-to-start", "ready", "drafted",
            "approved", "refined", "selected", "待开发", "prêt", "bereit", "listo", "pronto", "готово-к-разработке",
        ],
    ),
    (Contexted, &["contexted", "context-ready"]),
    (
        InProgress,
        &[
            "in-progress", "inprogress", "in-development", "in-dev", "wip", "work-in-progress", "started", "active", "doing",
            "developing", "implementing", "ongoing", "underway", "进行中", "開発中", "開發中", "進行中", "en-cours", "en-progreso",
            "em-andamento", "em-progresso", "in-arbeit", "в-работе", "в-процессе",
        ],
    ),
    (
        Review,
        &[
            "review", "in-review", "ready-for-review", "code-review", "in-code-review", "ready-for-code-review",
            "needs-review", "awaiting-review", "waiting-for-review", "pending-review", "review-pending", "under-review", "qa", "in-qa",
            "ready-for-qa", "testing", "in-testing", "ready-for-testing", "ready-for-test", "implementation-complete",
            "development-complete", "dev-complete", "dev-done", "code-complete", "待审查", "审查中", "レビュー中", "レビュー",
            "en-revue", "en-revisión", "em-revisão", "in-prüfung", "на-проверке", "на-ревью",
        ],
    ),
    (
        Done,
        &[
            "done", "completed", "complete", "implemented", "closed", "merged", "shipped", "accepted", "released", "finished",
            "delivered", "deployed", "resolved", "verified", "已完成", "完成", "完了", "terminé", "terminée", "fini", "hecho",
            "completado", "completada", "terminado", "concluído", "concluída", "feito", "fertig", "erledigt", "abgeschlossen",
            "готово", "выполнено", "завершено",
        ],
    ),
    (Optional, &["optional"]),
    (
        Parked(ParkedState::Blocked),
        &[
            "blocked", "waiting", "stuck", "awaiting-operator", "awaiting-human", "waiting-for-operator", "bloqué", "bloqueado",
            "blockiert", "заблокировано", "受阻",
        ],
    ),
    (
        Parked(ParkedState::Deferred),
        &[
            "deferred", "postponed", "later", "on-hold", "onhold", "hold", "parked", "paused", "future", "icebox", "delayed",
            "reporté", "pospuesto", "adiado", "verschoben", "отложено", "推迟", "延期",
        ],
    ),
    (
        Parked(ParkedState::Dropped),
        &[
            "cancelled", "canceled", "dropped", "superseded", "skipped", "skip", "split", "removed", "obsolete", "moved",
            "wont-do", "won't-do", "wontdo", "wontfix", "won't-fix", "abandoned", "duplicate", "deprecated", "rejected",
            "descoped", "de-scoped", "out-of-scope", "absorbed", "replaced", "retired", "folded", "n/a", "annulé", "cancelado",
            "abgebrochen", "отменено", "已取消", "取消",
        ],
    ),
];

/// Words that go on with what happened to the entry: `moved-to-epic-4`.
const OPEN_WORDS: &[(StateMeaning, &[&str])] = &[
    (Parked(ParkedState::Blocked), &["blocked-by-", "blocked-on-", "waiting-for-", "waiting-on-"]),
    (Parked(ParkedState::Deferred), &["deferred-to-", "deferred-until-", "postponed-to-"]),
    (
        Parked(ParkedState::Dropped),
        &[
            "moved-to-",
            "merged-into-",
            "superseded-by-",
            "split-into-",
            "replaced-by-",
            "absorbed-into-",
            "folded-into-",
        ],
    ),
];

impl StateMeaning {
    /// Finds out what a written state means; `None` if it is no known word.
    pub fn parse(state_text: &str) -> Option<StateMeaning> {
        let folded_text = fold_state(state_text.trim_matches(|character: char| !character.is_alphanumeric()));
        let open_meaning = OPEN_WORDS
            .iter()
            .find(|(_, words)| words.iter().any(|word| folded_text.starts_with(word)))
            .map(|(meaning, _)| *meaning);
        if open_meaning.is_some() && !folded_text.contains("review") {
            return open_meaning;
        }
        let (meaning, word_range) = find_state_word(state_text)?;
        refine_meaning(meaning, &state_text[word_range.end..])
    }
}

/// What a word means with the remark behind it: `ready-for-dev (blocked by 1-2)` is blocked, and `done?` means nothing.
fn refine_meaning(meaning: StateMeaning, remark: &str) -> Option<StateMeaning> {
    const DOUBTS: [&str; 6] = ["?", " but ", "rework", "fail", "->", "→"];
    let remark = remark.to_lowercase();
    let is_doubted = DOUBTS.iter().any(|doubt| remark.contains(doubt)) || remark.starts_with("~~");
    match meaning {
        _ if is_doubted => None,
        StateMeaning::Done | StateMeaning::Parked(_) => Some(meaning),
        _ if remark.contains("blocked") => Some(Parked(ParkedState::Blocked)),
        _ => Some(meaning),
    }
}

/// Finds the longest state at the start of a value, apart from marks and emoji in front of it.
pub(crate) fn find_state_word(state_value: &str) -> Option<(StateMeaning, Range<usize>)> {
    let unmarked = state_value.trim_start_matches(|character: char| !character.is_alphanumeric());
    let word_start = state_value.len() - unmarked.len();
    let matches = STATE_WORDS
        .iter()
        .flat_map(|(meaning, words)| words.iter().map(move |word| (*meaning, *word)))
        .filter_map(|(meaning, word)| Some((meaning, match_word(unmarked, word)?)));
    let (meaning, word_length) = matches.max_by_key(|(_, word_length)| *word_length)?;
    Some((meaning, word_start..word_start + word_length))
}

/// The length of a word at the start of a text, in any case and with spaces or underscores for its dashes.
fn match_word(text: &str, word: &str) -> Option<usize> {
    let mut text_chars = text.char_indices();
    for word_char in word.chars() {
        let (_, text_char) = text_chars.next()?;
        let is_same = match word_char {
            '-' => matches!(text_char, '-' | '_' | ' '),
            _ => is_same_letter(text_char, word_char),
        };
        if !is_same {
            return None;
        }
    }
    let word_end = text_chars.next().map_or(text.len(), |(index, _)| index);
    is_word_end(&text[word_end..]).then_some(word_end)
}

/// Whether a character is a letter of a state word, which is in lower case. Boards have hundreds of states, and each of them is compared
/// with all words: the letters of ASCII must be fast.
fn is_same_letter(text_char: char, word_letter: char) -> bool {
    match text_char.is_ascii() {
        true => text_char.to_ascii_lowercase() == word_letter,
        false => text_char.to_lowercase().eq([word_letter]),
    }
}

/// Whether a word ends here: `done-ish` and `reviewed` are other words.
fn is_word_end(after_word: &str) -> bool {
    let mut following = after_word.chars();
    match following.next() {
        Some('-' | '_') => !following.next().is_some_and(char::is_alphanumeric),
        next_character => !next_character.is_some_and(char::is_alphanumeric),
    }
}

/// Folds `Ready for Dev` and `in_progress` to one spelling.
fn fold_state(state_text: &str) -> String {
    state_text.to_lowercase().replace([' ', '_'], "-")
}

impl StoryStatus {
    pub const ALL: [StoryStatus; 5] = [
        StoryStatus::Backlog,
        StoryStatus::ReadyForDev,
        StoryStatus::InProgress,
        StoryStatus::Review,
        StoryStatus::Done,
    ];

    /// Parses a state in any case, with all words for it.
    pub fn parse(status_text: &str) -> Option<StoryStatus> {
        StateMeaning::parse(status_text).and_then(StoryStatus::from_meaning)
    }

    pub fn from_meaning(meaning: StateMeaning) -> Option<StoryStatus> {
        match meaning {
            Backlog => Some(StoryStatus::Backlog),
            Ready | Contexted => Some(StoryStatus::ReadyForDev),
            InProgress => Some(StoryStatus::InProgress),
            Review => Some(StoryStatus::Review),
            Done => Some(StoryStatus::Done),
            Optional | Parked(_) => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            StoryStatus::Backlog => "backlog",
            StoryStatus::ReadyForDev => "ready-for-dev",
            StoryStatus::InProgress => "in-progress",
            StoryStatus::Review => "review",
            StoryStatus::Done => "done",
        }
    }
}

impl EpicStatus {
    pub const ALL: [EpicStatus; 3] = [EpicStatus::Backlog, EpicStatus::InProgress, EpicStatus::Done];

    pub fn parse(status_text: &str) -> Option<EpicStatus> {
        StateMeaning::parse(status_text).and_then(EpicStatus::from_meaning)
    }

    pub fn from_meaning(meaning: StateMeaning) -> Option<EpicStatus> {
        match meaning {
            Backlog | Ready => Some(EpicStatus::Backlog),
            // Early eras call an epic `contexted` once its context is written.
            Contexted | InProgress | Review => Some(EpicStatus::InProgress),
            Done => Some(EpicStatus::Done),
            Optional | Parked(_) => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            EpicStatus::Backlog => "backlog",
            EpicStatus::InProgress => "in-progress",
            EpicStatus::Done => "done",
        }
    }
}

impl RetroStatus {
    pub const ALL: [RetroStatus; 2] = [RetroStatus::Optional, RetroStatus::Done];

    pub fn parse(status_text: &str) -> Option<RetroStatus> {
        StateMeaning::parse(status_text).and_then(RetroStatus::from_meaning)
    }

    pub fn from_meaning(meaning: StateMeaning) -> Option<RetroStatus> {
        match meaning {
            Done => Some(RetroStatus::Done),
            // A retrospective that was not held yet can still be held.
            Optional | Backlog | Ready | Contexted | InProgress | Review => Some(RetroStatus::Optional),
            Parked(_) => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            RetroStatus::Optional => "optional",
            RetroStatus::Done => "done",
        }
    }
}

impl ParkedState {
    pub fn as_str(self) -> &'static str {
        match self {
            ParkedState::Blocked => "blocked",
            ParkedState::Deferred => "deferred",
            ParkedState::Dropped => "dropped",
        }
    }
}

impl fmt::Display for StoryStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for EpicStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for RetroStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for ParkedState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_versions_and_of_users_are_understood() {
        for (state_text, expected) in [
            ("drafted", Some(StoryStatus::ReadyForDev)),
            ("**Ready for Dev**", Some(StoryStatus::ReadyForDev)),
            ("in-review", Some(StoryStatus::Review)),
            ("Ready for Review", Some(StoryStatus::Review)),
            ("Implementation Complete", Some(StoryStatus::Review)),
            ("Completed", Some(StoryStatus::Done)),
            ("✅ COMPLETED (2026-01-02)", Some(StoryStatus::Done)),
            ("in_progress", Some(StoryStatus::InProgress)),
            ("WIP", Some(StoryStatus::InProgress)),
            ("not_started", Some(StoryStatus::Backlog)),
            ("已完成", Some(StoryStatus::Done)),
            ("PRÊT", Some(StoryStatus::ReadyForDev)),
            ("ГОТОВО", Some(StoryStatus::Done)),
            ("bacKlog", Some(StoryStatus::Backlog)),
            ("En cours d'implémentation", Some(StoryStatus::InProgress)),
            ("done-ish", None),
            ("reviewed", None),
            ("done?", None),
            ("done but tests fail", None),
            ("backlog -> done", None),
            ("waiting for review", Some(StoryStatus::Review)),
            ("sideways", None),
            ("", None),
            ("blocked", None),
        ] {
            assert_eq!(StoryStatus::parse(state_text), expected, "{state_text}");
        }
        assert_eq!(EpicStatus::parse("contexted"), Some(EpicStatus::InProgress));
        assert_eq!(RetroStatus::parse("Optional"), Some(RetroStatus::Optional));
        assert_eq!(RetroStatus::parse("completed"), Some(RetroStatus::Done));
    }

    #[test]
    fn an_entry_can_be_parked() {
        for (state_text, expected) in [
            ("blocked", ParkedState::Blocked),
            ("Blocked by 1-2", ParkedState::Blocked),
            ("in-progress (BLOCKED)", ParkedState::Blocked),
            ("ready-for-dev - blocked by 1-2", ParkedState::Blocked),
            ("awaiting-operator", ParkedState::Blocked),
            ("Awaiting Human (the domain)", ParkedState::Blocked),
            ("waiting_for_operator", ParkedState::Blocked),
            ("deferred", ParkedState::Deferred),
            ("on hold", ParkedState::Deferred),
            ("moved-to-epic-4", ParkedState::Dropped),
            ("superseded", ParkedState::Dropped),
            ("won't do", ParkedState::Dropped),
        ] {
            assert_eq!(StateMeaning::parse(state_text), Some(Parked(expected)), "{state_text}");
        }
    }

    #[test]
    fn the_word_is_found_where_it_stands() {
        let find_text = |value: &'static str| find_state_word(value).map(|(_, range)| &value[range]);
        assert_eq!(find_text(" **ready_for_dev** now"), Some("ready_for_dev"));
        assert_eq!(find_text("✅ Done."), Some("Done"));
        assert_eq!(find_text("soon"), None);
    }
}

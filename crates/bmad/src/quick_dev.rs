//! Quick-dev: whether it works from a spec or from instructions, how heavy the task is, and what says that it should not stay
//! quick.
//!
//! Signals are shown with their reasons and decide nothing: the user decides, or the workflow that asked.

use tribunal_json::{Serialize, schemars};

use crate::tier::{self, contains_phrase, tokenize};

/// What quick-dev was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum QuickDevMode {
    /// A spec to carry out; `None` if a spec is meant and not named.
    TechSpec { path: Option<String> },
    /// Instructions in plain words.
    Direct,
}

/// How heavy a task in plain words is, the heaviest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuickDevWeight {
    /// The task can run as it is.
    Simple,
    /// A small plan is offered first.
    Medium,
    /// The full method is recommended.
    Complex,
}

/// The kinds of signals that a task has outgrown quick-dev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EscalationKind {
    ScopeGrows,
    Architecture,
    Subsystems,
    Tests,
    Wish,
}

/// A signal with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EscalationSignal {
    pub kind: EscalationKind,
    pub reason: String,
}

/// A task under way.
#[derive(Clone, Debug, Default)]
pub struct OngoingTask<'a> {
    /// The task, and everything that was said about it since.
    pub task_text: &'a str,
    /// How many files were planned to change; `None` if that is unknown.
    pub planned_files: Option<usize>,
    /// The paths that were changed, relative to the project's root.
    pub touched_paths: &'a [String],
}

/// So many files above the plan are no longer an oversight.
const SCOPE_SLACK: usize = 3;
/// So many directories of source count as several subsystems.
const MANY_SUBSYSTEMS: usize = 3;
/// A task that takes more words is not simple.
const MANY_WORDS: usize = 60;
/// Neither is a task with so many points.
const MANY_POINTS: usize = 3;

const SPEC_PHRASES: [&str; 8] = [
    "execute spec",
    "execute the spec",
    "implement the spec",
    "run the spec",
    "execute tech-spec",
    "execute the tech-spec",
    "implement the tech-spec",
    "from the tech-spec",
];

const SIGNAL_PHRASES: [(EscalationKind, &[&str]); 5] = [
    (
        EscalationKind::ScopeGrows,
        &["scope creep", "scope grew", "out of scope", "while at it", "also turns out", "bigger than expected"],
    ),
    (
        EscalationKind::Architecture,
        &[
            "architecture",
            "architectural",
            "data model",
            "schema migration",
            "new service",
            "breaking change",
            "choose a database",
            "redesign",
        ],
    ),
    (
        EscalationKind::Subsystems,
        &[
            "several subsystems",
            "multiple subsystems",
            "several services",
            "multiple services",
            "across services",
            "across modules",
        ],
    ),
    (
        EscalationKind::Tests,
        &["integration test", "end-to-end test", "e2e test", "load test", "performance test", "test strategy"],
    ),
    (
        EscalationKind::Wish,
        &[
            "more rigor",
            "more rigorous",
            "more thorough",
            "full workflow",
            "full process",
            "proper plan",
            "plan it properly",
        ],
    ),
];

/// Whether a task names a spec, means one, or is an instruction.
pub fn detect_mode(task_text: &str) -> QuickDevMode {
    const PUNCTUATION: [char; 8] = ['`', '"', '\'', '(', ')', ',', ';', ':'];
    // A path may stand in quotes or parentheses, and a sentence may end with it.
    let words = task_text.split_whitespace().map(|candidate| candidate.trim_end_matches('.').trim_matches(PUNCTUATION));
    let spec_path = words
        .map(|candidate| candidate.trim_end_matches('.'))
        .find(|candidate| is_spec_path(&candidate.to_lowercase()));
    if let Some(spec_path) = spec_path {
        return QuickDevMode::TechSpec { path: Some(spec_path.to_string()) };
    }
    let task_tokens = tokenize(task_text);
    match SPEC_PHRASES.iter().any(|phrase| contains_phrase(&task_tokens, phrase)) {
        true => QuickDevMode::TechSpec { path: None },
        false => QuickDevMode::Direct,
    }
}

/// Whether a path names a spec: `tech-spec-login.md` and `specs/login.md` do, `inspect.md` does not.
fn is_spec_path(lower_path: &str) -> bool {
    let is_spec_word = |word: &str| matches!(word, "spec" | "specs" | "specification" | "techspec");
    let mut path_parts = lower_path.rsplit('/').take(2);
    lower_path.ends_with(".md")
        && path_parts.any(|path_part| path_part.split(|character: char| !character.is_alphanumeric()).any(is_spec_word))
}

/// The weight of a task with the reasons for it; a simple task has none.
pub fn assess_weight(task_text: &str) -> (QuickDevWeight, Vec<String>) {
    let mut reasons: Vec<(QuickDevWeight, String)> = find_signals(&OngoingTask { task_text, ..OngoingTask::default() })
        .into_iter()
        .map(|signal| match signal.kind {
            // These two need decisions that outlast the task.
            EscalationKind::Architecture | EscalationKind::Subsystems => (QuickDevWeight::Complex, signal.reason),
            _ => (QuickDevWeight::Medium, signal.reason),
        })
        .collect();
    let suggestion = tier::suggest_tier(
        &tier::TierInput { description: task_text, ..tier::TierInput::default() },
        &tier::TierLevels::default(),
    );
    // A default says nothing about this task.
    match suggestion.tier {
        _ if suggestion.is_default => {}
        3.. => reasons.push((QuickDevWeight::Complex, suggestion.reasons.join("; "))),
        2 => reasons.push((QuickDevWeight::Medium, suggestion.reasons.join("; "))),
        _ => {}
    }
    let word_count = tokenize(task_text).len();
    if word_count > MANY_WORDS {
        reasons.push((QuickDevWeight::Medium, format!("long description ({word_count} words)")));
    }
    // Several points are several tasks in one.
    let point_count = task_text.lines().filter(|line| is_list_item(line.trim_start())).count();
    if point_count >= MANY_POINTS {
        reasons.push((QuickDevWeight::Medium, format!("{point_count} list items")));
    }
    // The heaviest reason decides; the others are shown as well.
    let task_weight = reasons.iter().map(|(task_weight, _)| *task_weight).max().unwrap_or(QuickDevWeight::Simple);
    (task_weight, reasons.into_iter().map(|(_, reason)| reason).collect())
}

/// Whether a line is an item of a bulleted or numbered list.
fn is_list_item(line: &str) -> bool {
    let after_digits = line.trim_start_matches(|character: char| character.is_ascii_digit());
    line.starts_with(['-', '*', '+']) || (after_digits.len() < line.len() && after_digits.starts_with(['.', ')']))
}

/// The signals that a task should move to the full method, in the order of their kinds.
pub fn find_signals(ongoing_task: &OngoingTask<'_>) -> Vec<EscalationSignal> {
    let task_tokens = tokenize(ongoing_task.task_text);
    let mut signals: Vec<EscalationSignal> = SIGNAL_PHRASES
        .iter()
        .filter_map(|(signal_kind, phrases)| {
            let phrase = phrases.iter().find(|phrase| contains_phrase(&task_tokens, phrase))?;
            Some(EscalationSignal { kind: *signal_kind, reason: format!("mentions “{phrase}”") })
        })
        .collect();
    // Both limits must be exceeded: twice the plan is nothing for one file, and three files are nothing for fifty.
    if let Some(planned_count) = ongoing_task.planned_files
        && ongoing_task.touched_paths.len() > planned_count.saturating_mul(2)
        && ongoing_task.touched_paths.len() >= planned_count.saturating_add(SCOPE_SLACK)
    {
        let reason =
            format!("{} files changed, but only {planned_count} were planned", ongoing_task.touched_paths.len());
        signals.push(EscalationSignal { kind: EscalationKind::ScopeGrows, reason });
    }
    // Files are grouped by subsystem, since many files of one part are still one place.
    let mut subsystems: Vec<&str> =
        ongoing_task.touched_paths.iter().map(|touched_path| subsystem_of(touched_path)).collect();
    subsystems.sort_unstable();
    subsystems.dedup();
    if subsystems.len() >= MANY_SUBSYSTEMS {
        let reason = format!("{} parts of the project changed: {}", subsystems.len(), subsystems.join(", "));
        signals.push(EscalationSignal { kind: EscalationKind::Subsystems, reason });
    }
    // A phrase and a count may give the same kind twice; sorting keeps them together.
    signals.sort_by_key(|signal| signal.kind);
    signals
}

/// The directory that names a subsystem: the first one, or the second one below a directory that only holds subsystems.
fn subsystem_of(touched_path: &str) -> &str {
    const CONTAINER_DIRS: [&str; 8] = ["src", "lib", "app", "apps", "packages", "crates", "services", "modules"];
    let mut slash_offsets = touched_path.match_indices('/').map(|(slash_offset, _)| slash_offset);
    let Some(first_slash) = slash_offsets.next() else { return "." };
    match CONTAINER_DIRS.contains(&&touched_path[..first_slash]) {
        true => slash_offsets.next().map_or(&touched_path[..first_slash], |second_slash| &touched_path[..second_slash]),
        false => &touched_path[..first_slash],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_spec_is_named_or_implied_and_everything_else_is_an_instruction() {
        let tech_spec = |path: &str| QuickDevMode::TechSpec { path: Some(path.into()) };
        for (task, expected) in [
            ("do out/tech-spec-login.md, please", tech_spec("out/tech-spec-login.md")),
            ("quick-dev `_bmad-output/specs/spec-x/SPEC.md`.", tech_spec("_bmad-output/specs/spec-x/SPEC.md")),
            ("Execute the spec", QuickDevMode::TechSpec { path: None }),
            ("implement the tech-spec we wrote", QuickDevMode::TechSpec { path: None }),
            ("look at inspect.md", QuickDevMode::Direct),
            ("add a flag", QuickDevMode::Direct),
            ("", QuickDevMode::Direct),
        ] {
            assert_eq!(detect_mode(task), expected, "{task}");
        }
    }

    #[test]
    fn the_weight_of_a_task_follows_from_its_words() {
        let long_task = "word ".repeat(61);
        for (task, expected) in [
            ("Fix the typo", QuickDevWeight::Simple),
            ("Add a flag", QuickDevWeight::Simple),
            ("something", QuickDevWeight::Simple),
            ("A dashboard", QuickDevWeight::Medium),
            ("Do:\n- a\n- b\n2. c", QuickDevWeight::Medium),
            (long_task.as_str(), QuickDevWeight::Medium),
            ("Needs integration tests", QuickDevWeight::Complex),
            ("Needs load tests", QuickDevWeight::Medium),
            ("Change the data model", QuickDevWeight::Complex),
            ("a new platform", QuickDevWeight::Complex),
        ] {
            assert_eq!(assess_weight(task).0, expected, "{task}: {:?}", assess_weight(task).1);
        }
    }

    #[test]
    fn every_escalation_signal_has_its_reason() {
        let touched_paths: Vec<String> =
            ["src/auth/a.rs", "src/billing/b.rs", "web/c.ts", "web/d.ts", "e.md"].map(String::from).to_vec();
        let render_signals = |growing_task: &OngoingTask<'_>| {
            find_signals(growing_task)
                .iter()
                .map(|signal| format!("{:?}: {}", signal.kind, signal.reason))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let growing_task = OngoingTask {
            task_text: "Please be more thorough, it needs a schema migration",
            planned_files: Some(2),
            touched_paths: &touched_paths,
        };
        insta::assert_snapshot!(render_signals(&growing_task), @"
        ScopeGrows: 5 files changed, but only 2 were planned
        Architecture: mentions “schema migration”
        Subsystems: 4 parts of the project changed: ., src/auth, src/billing, web
        Wish: mentions “more thorough”
        ");
        let small_task =
            OngoingTask { task_text: "rename it", planned_files: Some(4), touched_paths: &touched_paths[2..4] };
        assert_eq!(render_signals(&small_task), "");
    }

    proptest! {
        #[test]
        fn any_words_and_paths_are_weighed(said in "\\PC{0,80}", touched in proptest::collection::vec("[a-c/.\u{e4}]{0,9}", 0..6)) {
            detect_mode(&said);
            assess_weight(&said);
            find_signals(&OngoingTask { task_text: &said, planned_files: Some(1), touched_paths: &touched });
        }
    }
}

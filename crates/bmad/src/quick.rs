//! Quick-dev: whether it works from a spec or from instructions, how heavy the task is, and what says that it should not stay
//! quick.
//!
//! Signals are shown with their reasons and decide nothing: the user decides, or the workflow that asked.

use schemars::JsonSchema;
use serde::Serialize;

use crate::tier::{self, stands_in, tokens};

/// What quick-dev was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "kebab-case")]
pub enum Mode {
    /// A spec to carry out; `None` if a spec is meant and not named.
    TechSpec { path: Option<String> },
    /// Instructions in plain words.
    Direct,
}

/// How heavy a task in plain words is, the heaviest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The task can run as it is.
    Simple,
    /// A small plan is offered first.
    Medium,
    /// The full method is recommended.
    Complex,
}

/// The kinds of signals that a task has outgrown quick-dev.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    ScopeGrows,
    Architecture,
    Subsystems,
    Tests,
    Wish,
}

/// A signal with the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Signal {
    pub kind: Kind,
    pub reason: String,
}

/// A task under way.
#[derive(Clone, Debug, Default)]
pub struct Work<'a> {
    /// The task, and everything that was said about it since.
    pub said: &'a str,
    /// How many files were planned to change; `None` if that is unknown.
    pub planned: Option<usize>,
    /// The paths that were changed, relative to the project's root.
    pub touched: &'a [String],
}

/// So many files above the plan are no longer an oversight.
const SLIP: usize = 3;
/// So many directories of source count as several subsystems.
const SUBSYSTEMS: usize = 3;
/// A task that takes more words is not simple.
const MANY_WORDS: usize = 60;
/// Neither is a task with so many points.
const MANY_POINTS: usize = 3;

const SPEC_WORDS: [&str; 8] = [
    "execute spec",
    "execute the spec",
    "implement the spec",
    "run the spec",
    "execute tech-spec",
    "execute the tech-spec",
    "implement the tech-spec",
    "from the tech-spec",
];

const SIGNS: [(Kind, &[&str]); 5] = [
    (
        Kind::ScopeGrows,
        &[
            "scope creep",
            "scope grew",
            "out of scope",
            "while at it",
            "also turns out",
            "bigger than expected",
        ],
    ),
    (
        Kind::Architecture,
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
        Kind::Subsystems,
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
        Kind::Tests,
        &[
            "integration test",
            "end-to-end test",
            "e2e test",
            "load test",
            "performance test",
            "test strategy",
        ],
    ),
    (
        Kind::Wish,
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
pub fn mode(task: &str) -> Mode {
    const MARKS: [char; 8] = ['`', '"', '\'', '(', ')', ',', ';', ':'];
    // A path may stand in quotes or parentheses, and a sentence may end with it.
    let words = task.split_whitespace().map(|word| word.trim_end_matches('.').trim_matches(MARKS));
    let path = words.map(|word| word.trim_end_matches('.')).find(|word| is_spec(&word.to_lowercase()));
    if let Some(path) = path {
        return Mode::TechSpec { path: Some(path.to_string()) };
    }
    let tokens = tokens(task);
    match SPEC_WORDS.iter().any(|words| stands_in(&tokens, words)) {
        true => Mode::TechSpec { path: None },
        false => Mode::Direct,
    }
}

/// Whether a path names a spec: `tech-spec-login.md` and `specs/login.md` do, `inspect.md` does not.
fn is_spec(path: &str) -> bool {
    let is_word = |word: &str| matches!(word, "spec" | "specs" | "specification" | "techspec");
    let mut parts = path.rsplit('/').take(2);
    path.ends_with(".md") && parts.any(|part| part.split(|c: char| !c.is_alphanumeric()).any(is_word))
}

/// The weight of a task with the reasons for it; a simple task has none.
pub fn weight(task: &str) -> (Weight, Vec<String>) {
    let mut reasons: Vec<(Weight, String)> = signals(&Work { said: task, ..Work::default() })
        .into_iter()
        .map(|signal| match signal.kind {
            // These two need decisions that outlast the task.
            Kind::Architecture | Kind::Subsystems => (Weight::Complex, signal.reason),
            _ => (Weight::Medium, signal.reason),
        })
        .collect();
    let suggestion =
        tier::suggest(&tier::Task { words: task, ..tier::Task::default() }, &tier::Levels::default());
    // A default says nothing about this task.
    match suggestion.tier {
        _ if suggestion.is_default => {}
        3.. => reasons.push((Weight::Complex, suggestion.reasons.join("; "))),
        2 => reasons.push((Weight::Medium, suggestion.reasons.join("; "))),
        _ => {}
    }
    let words = tokens(task).len();
    if words > MANY_WORDS {
        reasons.push((Weight::Medium, format!("it takes {words} words to say")));
    }
    // Several points are several tasks in one.
    let points = task.lines().filter(|line| is_point(line.trim_start())).count();
    if points >= MANY_POINTS {
        reasons.push((Weight::Medium, format!("it has {points} points")));
    }
    // The heaviest reason decides; the others are shown as well.
    let weight = reasons.iter().map(|(weight, _)| *weight).max().unwrap_or(Weight::Simple);
    (weight, reasons.into_iter().map(|(_, reason)| reason).collect())
}

/// Whether a line is an item of a bulleted or numbered list.
fn is_point(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '+']) || (rest.len() < line.len() && rest.starts_with(['.', ')']))
}

/// The signals that a task should move to the full method, in the order of their kinds.
pub fn signals(work: &Work<'_>) -> Vec<Signal> {
    let tokens = tokens(work.said);
    let mut signals: Vec<Signal> = SIGNS
        .iter()
        .filter_map(|(kind, phrases)| {
            let phrase = phrases.iter().find(|phrase| stands_in(&tokens, phrase))?;
            Some(Signal { kind: *kind, reason: format!("“{phrase}” was said") })
        })
        .collect();
    // Both limits must be exceeded: twice the plan is nothing for one file, and three files are nothing for fifty.
    if let Some(planned) = work.planned
        && work.touched.len() > planned.saturating_mul(2)
        && work.touched.len() >= planned.saturating_add(SLIP)
    {
        let reason = format!("{} files are touched, and {planned} were planned", work.touched.len());
        signals.push(Signal { kind: Kind::ScopeGrows, reason });
    }
    // Files are grouped by subsystem, since many files of one part are still one place.
    let mut parts: Vec<&str> = work.touched.iter().map(|path| subsystem(path)).collect();
    parts.sort_unstable();
    parts.dedup();
    if parts.len() >= SUBSYSTEMS {
        let reason = format!("{} parts of the project are touched: {}", parts.len(), parts.join(", "));
        signals.push(Signal { kind: Kind::Subsystems, reason });
    }
    // A phrase and a count may give the same kind twice; sorting keeps them together.
    signals.sort_by_key(|signal| signal.kind);
    signals
}

/// The directory that names a subsystem: the first one, or the second one below a directory that only holds subsystems.
fn subsystem(path: &str) -> &str {
    const HOLDERS: [&str; 8] = ["src", "lib", "app", "apps", "packages", "crates", "services", "modules"];
    let mut ends = path.match_indices('/').map(|(at, _)| at);
    let Some(first) = ends.next() else { return "." };
    match HOLDERS.contains(&&path[..first]) {
        true => ends.next().map_or(&path[..first], |second| &path[..second]),
        false => &path[..first],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_spec_is_named_or_meant_and_everything_else_is_an_instruction() {
        let spec = |path: &str| Mode::TechSpec { path: Some(path.into()) };
        for (task, expected) in [
            ("do out/tech-spec-login.md, please", spec("out/tech-spec-login.md")),
            ("quick-dev `_bmad-output/specs/spec-x/SPEC.md`.", spec("_bmad-output/specs/spec-x/SPEC.md")),
            ("Execute the spec", Mode::TechSpec { path: None }),
            ("implement the tech-spec we wrote", Mode::TechSpec { path: None }),
            ("look at inspect.md", Mode::Direct),
            ("add a flag", Mode::Direct),
            ("", Mode::Direct),
        ] {
            assert_eq!(mode(task), expected, "{task}");
        }
    }

    #[test]
    fn a_task_weighs_what_its_words_say() {
        let long = "word ".repeat(61);
        for (task, expected) in [
            ("Fix the typo", Weight::Simple),
            ("Add a flag", Weight::Simple),
            ("something", Weight::Simple),
            ("A dashboard", Weight::Medium),
            ("Do:\n- a\n- b\n2. c", Weight::Medium),
            (long.as_str(), Weight::Medium),
            ("Needs integration tests", Weight::Complex),
            ("Needs load tests", Weight::Medium),
            ("Change the data model", Weight::Complex),
            ("a new platform", Weight::Complex),
        ] {
            assert_eq!(weight(task).0, expected, "{task}: {:?}", weight(task).1);
        }
    }

    #[test]
    fn what_outgrows_quick_dev_is_named_with_its_reason() {
        let touched: Vec<String> =
            ["src/auth/a.rs", "src/billing/b.rs", "web/c.ts", "web/d.ts", "e.md"].map(String::from).to_vec();
        let said = |work: &Work<'_>| {
            signals(work)
                .iter()
                .map(|signal| format!("{:?}: {}", signal.kind, signal.reason))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let work = Work {
            said: "Please be more thorough, it needs a schema migration",
            planned: Some(2),
            touched: &touched,
        };
        insta::assert_snapshot!(said(&work), @r"
        ScopeGrows: 5 files are touched, and 2 were planned
        Architecture: “schema migration” was said
        Subsystems: 4 parts of the project are touched: ., src/auth, src/billing, web
        Wish: “more thorough” was said
        ");
        let calm = Work { said: "rename it", planned: Some(4), touched: &touched[2..4] };
        assert_eq!(said(&calm), "");
    }

    proptest! {
        #[test]
        fn any_words_and_paths_are_weighed(said in "\\PC{0,80}", touched in proptest::collection::vec("[a-c/.\u{e4}]{0,9}", 0..6)) {
            mode(&said);
            weight(&said);
            signals(&Work { said: &said, planned: Some(1), touched: &touched });
        }
    }
}

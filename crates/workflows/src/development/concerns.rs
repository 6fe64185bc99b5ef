//! What is questionable about finished work: files of the branch that it loses, secrets that it adds, tests and parts of its story that it
//! removes. No rule can tell whether that is right, so the next agent is told, or the user is asked, before such work lands.

use alloc::{format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::development::{parking::name_files, weakened_tests::WeakenedTests};
use tribunal_engine::{
    ids::{CommitId, TreeId},
    text::truncate_chars,
};

/// The most concerns that a message names.
const MAX_NAMED_CONCERNS: usize = 8;
/// The most characters of a criterion or task that a message shows.
const MAX_SHOWN_CHARS: usize = 100;
/// Words of a line that says what is to go. The endings differ: removed, deletes, moving.
const REMOVAL_WORDS: [&str; 11] =
    ["delet", "remov", "drop", "retire", "mov", "renam", "replac", "clean", "obsolete", "unused", "get rid"];

/// One thing that is questionable about finished work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "concern", rename_all = "snake_case")]
pub enum LandingConcern {
    /// A file of the branch is gone, and the task does not name it. A clone whose history was reset looks like this.
    LostFile { path: String },
    /// A file contains what looks like a secret, and nothing that it changes did.
    AddedSecret {
        path: String,
        /// What kind of secret it is; the secret itself is nowhere recorded.
        kind: String,
        /// Whether only an earlier commit of the work has it.
        #[serde(default, skip_serializing_if = "core::ops::Not::not")]
        only_in_history: bool,
    },
    /// A test is gone although the task names it.
    DeletedTest { path: String },
    /// The story does not have this acceptance criterion any more.
    RemovedCriterion { text: String },
    /// The story does not have this task any more.
    RemovedTask { text: String },
    /// Something else by which the work is measured is not as the story had it.
    ChangedMeasure {
        /// What it is, for instance `depends_on`.
        what: String,
        before: String,
        after: String,
    },
    /// The work changes Tribunal's settings, by which later work is measured.
    ChangedSettings { path: String },
    /// Nothing is left of a commit of the branch, and the task does not name its files. A clone whose history was reset looks like this.
    RevertedCommit { commit: CommitId, subject: String, paths: Vec<String> },
    /// The work is to land on top of a commit that appeared on the branch while an agent worked in the user's checkout. It may be the
    /// user's, or that of an agent that hides.
    CommitDuringWork {
        commit: CommitId,
        subject: String,
        /// Whether it says itself that an agent of the run made it.
        is_agents: bool,
        /// Where the branch was before.
        before: CommitId,
    },
    /// Tests are gone or do not run any more, and the task does not name their file.
    WeakenedTests(WeakenedTests),
    /// A test asserts less than before. The user is told and not asked.
    FewerAssertions { path: String, name: String, before: u32, after: u32 },
    /// A file is as it was before a commit of the branch. The user is told and not asked.
    RestoredFile { path: String, commit: CommitId },
}

impl LandingConcern {
    /// Whether an agent can repair it, so that the next session is told before the user is asked.
    pub fn is_told_first(&self) -> bool {
        matches!(
            self,
            LandingConcern::LostFile { .. }
                | LandingConcern::AddedSecret { .. }
                | LandingConcern::RevertedCommit { .. }
        )
    }

    /// Whether only the user can take it back: it is a commit on the branch.
    pub fn is_on_branch(&self) -> bool {
        matches!(self, LandingConcern::CommitDuringWork { .. })
    }

    /// Whether the user is not asked about it, and the report names it.
    pub fn is_note(&self) -> bool {
        matches!(self, LandingConcern::FewerAssertions { .. } | LandingConcern::RestoredFile { .. })
    }

    /// Whether the result itself does not have it, only a commit on the way to it.
    pub fn is_past(&self) -> bool {
        matches!(self, LandingConcern::AddedSecret { only_in_history: true, .. })
    }

    /// Describes what is not about a file, as a part of a sentence about the work. Files are named together.
    fn describe_other(&self) -> Option<String> {
        Some(match self {
            LandingConcern::LostFile { .. } | LandingConcern::DeletedTest { .. } => return None,
            LandingConcern::AddedSecret { path, kind, only_in_history: false } => {
                format!("adds what looks like a secret ({kind}) in {path}")
            }
            LandingConcern::AddedSecret { path, kind, only_in_history: true } => {
                format!("had what looks like a secret ({kind}) in {path}, in an earlier commit")
            }
            LandingConcern::RemovedCriterion { text } => {
                format!("removes the criterion \"{}\" from its story", truncate_chars(text, MAX_SHOWN_CHARS))
            }
            LandingConcern::RemovedTask { text } => {
                format!("removes the task \"{}\" from its story", truncate_chars(text, MAX_SHOWN_CHARS))
            }
            LandingConcern::ChangedMeasure { what, before, after } => {
                let show = |text: &str| match text {
                    "" => String::from("nothing"),
                    text => format!("\"{}\"", truncate_chars(text, MAX_SHOWN_CHARS)),
                };
                format!("changes {what} of its story from {} to {}", show(before), show(after))
            }
            LandingConcern::ChangedSettings { path } => {
                format!("changes {path}, the settings with which later runs verify and land")
            }
            LandingConcern::RevertedCommit { commit, subject, paths } => format!(
                "takes back commit {} \"{}\" ({})",
                commit.short_hex(),
                truncate_chars(subject, MAX_SHOWN_CHARS),
                name_files(paths)
            ),
            LandingConcern::CommitDuringWork { commit, subject, is_agents, before } => format!(
                "lands after commit {} \"{}\", which appeared on the branch while an agent worked in your checkout{} (`git reset \
                 --soft {}` takes it off the branch, and leaves its changes in your files)",
                commit.short_hex(),
                truncate_chars(subject, MAX_SHOWN_CHARS),
                if *is_agents { ", and which the agent made" } else { ", and which is not checked" },
                before.short_hex()
            ),
            LandingConcern::WeakenedTests(weakened) => weakened.describe(),
            LandingConcern::FewerAssertions { path, name, before, after } => {
                format!("has fewer assertions in the test `{name}` in {path}: {after} instead of {before}")
            }
            LandingConcern::RestoredFile { path, commit } => {
                format!("has {path} as it was before commit {}", commit.short_hex())
            }
        })
    }
}

/// Describes concerns as one sentence about the work.
pub fn describe_concerns(concerns: &[LandingConcern]) -> String {
    let collect_paths = |find_path: fn(&LandingConcern) -> Option<&String>| -> Vec<String> {
        concerns.iter().filter_map(find_path).cloned().collect()
    };
    let lost = collect_paths(|concern| match concern {
        LandingConcern::LostFile { path } => Some(path),
        _ => None,
    });
    let tests = collect_paths(|concern| match concern {
        LandingConcern::DeletedTest { path } => Some(path),
        _ => None,
    });
    let mut described = Vec::new();
    if !lost.is_empty() {
        described.push(format!("deletes what its task does not name: {}", name_files(&lost)));
    }
    if !tests.is_empty() {
        described.push(format!("deletes tests: {}", name_files(&tests)));
    }
    let others: Vec<String> = concerns.iter().filter_map(LandingConcern::describe_other).collect();
    described.extend(others.iter().take(MAX_NAMED_CONCERNS).cloned());
    if let Some(count) = others.len().checked_sub(MAX_NAMED_CONCERNS).filter(|count| *count > 0) {
        described.push(format!("{count} more"));
    }
    format!("the work {}", described.join("; "))
}

/// Says to an agent what it can do about concerns.
pub fn advise_agent(concerns: &[LandingConcern]) -> String {
    let described = describe_concerns(concerns);
    let has_lost = concerns.iter().any(|concern| matches!(concern, LandingConcern::LostFile { .. }));
    let has_secret = concerns.iter().any(|concern| matches!(concern, LandingConcern::AddedSecret { .. }));
    let mut advice = Vec::new();
    if has_lost {
        advice.push("Put the files back as they are on the branch; if one of them has to go, leave it deleted, and the user is asked.");
    }
    if has_secret {
        advice.push("Take the secret out, and read it from the environment instead.");
    }
    if concerns.iter().any(|concern| matches!(concern, LandingConcern::RevertedCommit { .. })) {
        advice.push("Keep what these commits did: the files have to be as they are on the branch, with your own changes on top.");
    }
    match advice.is_empty() {
        true => described,
        false => format!("{described}. {}", advice.join(" ")),
    }
}

/// What work is compared with before it lands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct LandingGate {
    /// The file of the story, relative to the project's root: its criteria and tasks must stay, and what it named when the work began may
    /// be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    /// The content in which this run has written the story; `None` if the branch had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<TreeId>,
    /// Other files of the branch that name what may be deleted, for instance a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub naming_files: Vec<String>,
    /// A text that names what may be deleted: the task itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub naming_text: String,
    /// What the user has accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<LandingConcern>,
    /// Whether nothing is compared: what lands is not the work of an agent.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_open: bool,
}

impl LandingGate {
    /// A gate for what no agent wrote.
    pub fn open() -> LandingGate {
        LandingGate { is_open: true, ..LandingGate::default() }
    }
}

/// What was done about concerns so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ConcernLog {
    /// What agents were told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<LandingConcern>,
    /// What the user has accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<LandingConcern>,
}

/// What follows from concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcernStep {
    TellAgent,
    AskUser,
}

impl ConcernLog {
    /// Decides what follows: what an agent can repair it is told once. The user is asked about everything else.
    pub fn choose_step(&mut self, concerns: &[LandingConcern]) -> ConcernStep {
        let is_new = |concern: &&LandingConcern| concern.is_told_first() && !self.told.contains(concern);
        let untold: Vec<LandingConcern> = concerns.iter().filter(is_new).cloned().collect();
        if untold.is_empty() {
            return ConcernStep::AskUser;
        }
        self.told.extend(untold);
        ConcernStep::TellAgent
    }
}

/// Whether a text names a file: by its path or the end of it, or by a directory in a line that says that something goes.
pub fn names_path(text: &str, path: &str) -> bool {
    text.lines().any(|line| {
        let lower_line = line.to_lowercase();
        let is_removal = REMOVAL_WORDS.iter().any(|word| lower_line.contains(word));
        let is_delimiter = |c: char| c.is_whitespace() || "\"'`()[]{}<>,;:|*".contains(c);
        line.split(is_delimiter).any(|word| {
            let word = word.trim_end_matches(['.', '!', '?']).trim_start_matches("./");
            let directory = word.trim_end_matches('/');
            let is_file =
                |name: &str| path == name || path.strip_suffix(name).is_some_and(|start| start.ends_with('/'));
            // A name without a dot is more often a word than a file.
            let is_file_name = word.contains('.') || word.contains('/');
            (is_file_name && is_file(word))
                || path == word
                || (is_removal
                    && !directory.is_empty()
                    && path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/')))
        })
    })
}

/// Whether a text stays the same if something is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Additions {
    /// Agents write notes behind tasks.
    Accepted,
    /// "Not required: …" turns a criterion into its opposite.
    Refused,
}

/// Finds the texts of the first list that the second one does not have. How a text is formatted makes no difference, unless it is struck
/// out.
pub fn find_removed<'t>(before: impl Iterator<Item = &'t str>, after: &[&str], additions: Additions) -> Vec<String> {
    let after: Vec<String> = after.iter().map(|text| normalize_text(text)).collect();
    before
        .filter(|text| {
            let normalized = normalize_text(text);
            let is_kept = |later: &String| match additions {
                Additions::Accepted => later.contains(normalized.as_str()),
                Additions::Refused => *later == normalized,
            };
            !normalized.is_empty() && !after.iter().any(is_kept)
        })
        .map(String::from)
        .collect()
}

/// Leaves only the words of a text.
fn normalize_text(text: &str) -> String {
    let marked = text.replace("~~", " struck ");
    let plain: String = marked.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    plain.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn files_are_named_by_their_path_or_by_a_directory_that_goes() {
        for (text, path) in [
            ("Delete `src/old.rs` and its test.", "src/old.rs"),
            ("- touch src/old.rs.", "src/old.rs"),
            ("see old.rs", "src/old.rs"),
            ("(auth/login.ts)", "web/auth/login.ts"),
            ("Remove legacy/", "legacy/a/b.rs"),
            ("the directory `legacy/**` is removed", "legacy/a.rs"),
            ("./Makefile", "Makefile"),
        ] {
            assert!(names_path(text, path), "{text}: {path}");
        }
        for (text, path) in [
            ("Change src/new.rs", "src/old.rs"),
            ("Structure: `src/`, `tests/`", "src/old.rs"),
            ("bold.rs", "src/old.rs"),
            ("Remove srcs", "src/old.rs"),
            ("", "a"),
            ("tests pass", "tests/a.rs"),
        ] {
            assert!(!names_path(text, path), "{text}: {path}");
        }
    }

    #[test]
    fn a_text_stays_if_it_is_ticked_reformatted_or_extended() {
        let after = ["**Bran** is removed.", "Flour is kept (see notes)", "~~Sacks are tied.~~"];
        let find = |text: &'static str, additions| find_removed([text].into_iter(), &after, additions);
        assert_eq!(find("Bran is removed", Additions::Refused), Vec::<String>::new());
        assert_eq!(find("Flour is kept.", Additions::Accepted), Vec::<String>::new());
        for (text, additions) in [
            ("Flour is kept.", Additions::Refused),
            ("Flour is kept dry", Additions::Accepted),
            ("Sacks are tied.", Additions::Refused),
            ("Sacks are tied today", Additions::Accepted),
        ] {
            assert_eq!(find(text, additions), vec![text]);
        }
    }

    #[test]
    fn agents_are_told_what_they_can_do() {
        let concerns = [LandingConcern::LostFile { path: "a.rs".into() }];
        assert_eq!(
            advise_agent(&concerns),
            "the work deletes what its task does not name: a.rs. Put the files back as they are on the branch; if one of them has to \
             go, leave it deleted, and the user is asked."
        );
        let many: Vec<LandingConcern> =
            (1..=10).map(|number| LandingConcern::RemovedTask { text: format!("t{number}") }).collect();
        assert!(describe_concerns(&many).ends_with("removes the task \"t8\" from its story; 2 more"));
    }
}

//! What files and git say about a story: no word of an agent is needed for it.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt;

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{development::workspace::WorkspaceState, findings::finding::Severity};
use tribunal_engine::{
    fault::Fault,
    ids::{CommitId, TreeId},
    text::word_table::words,
};

/// How far a story is, in the words of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StoryStage {
    Backlog,
    ReadyForDev,
    InProgress,
    Review,
    Done,
}

words!(StoryStage {
    Backlog = "backlog",
    ReadyForDev = "ready-for-dev",
    InProgress = "in-progress",
    Review = "review",
    Done = "done",
});

/// Which story it is, and where its files are. All paths are relative to the project's root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryName {
    /// The key as the board has it.
    pub key: String,
    /// The title, for users and commit messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The board; `None` if the project has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub board: Option<String>,
    /// The directories with plans, stories and settings: changes there are no work on the product.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bookkeeping: Vec<String>,
}

impl StoryName {
    /// Names a story by its key alone.
    pub fn from_key(key: impl Into<String>) -> StoryName {
        StoryName { key: key.into(), title: String::new(), board: None, bookkeeping: Vec::new() }
    }

    /// Whether a changed file is only bookkeeping.
    pub fn is_bookkeeping(&self, path: &str) -> bool {
        let is_inside = |directory: &String| {
            path.strip_prefix(directory.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.board.as_deref() == Some(path) || self.bookkeeping.iter().any(is_inside)
    }
}

/// Where the files of a story are read or written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "place", rename_all = "snake_case")]
pub enum StoryPlace {
    /// A workspace for development.
    Workspace { workspace: String },
    /// The user's checkout.
    Checkout,
}

/// Reads what files and git say about a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ReadStory {
    #[serde(flatten)]
    pub place: StoryPlace,
    pub story: StoryName,
    /// The commit with which the work began, if that was before the workspace was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<CommitId>,
    /// The frozen content of the workspace that is read; `None` reads what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StoryReading {
    Read(Box<StoryFacts>),
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryFacts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub board: Option<StageFact>,
    /// The story's file; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<StoryFileFacts>,
    /// What differs from the commit that the work began with.
    pub work: WorkspaceState,
    /// The commit of the branch into which the user has merged the work: it is measured from there, and not from the merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<CommitId>,
    /// The changed files that are tests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_tests: Vec<String>,
    /// The numbers of the criteria that changed tests name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tested_criteria: Vec<u32>,
    /// Files of the file list that exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub existing_files: Vec<String>,
    /// Changed files that decide what checks, hooks and pipelines run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_controls: Vec<String>,
    /// What is to be said about the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
}

/// A stage, and the word that says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StageFact {
    /// `None` if the word is no stage, for instance `blocked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<StoryStage>,
    pub word: String,
}

/// Formats the word, as the file has it.
impl fmt::Display for StageFact {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.word)
    }
}

/// A criterion for which a story says why it has no test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ExcusedCriterion {
    pub number: u32,
    /// The line that says so.
    pub line: String,
}

/// What a story's own file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct StoryFileFacts {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StageFact>,
    /// A spec, which its own workflow writes and finishes; it has no boxes and no file list.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub is_spec: bool,
    /// Why the workflow stopped by itself, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<String>,
    /// Why its front matter cannot be read, with the line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_front_matter: Option<String>,
    pub tasks: Vec<TaskFact>,
    pub criteria: Vec<u32>,
    /// The criteria for which the file says why they have no test.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub excused_criteria: Vec<ExcusedCriterion>,
    /// What the story owes and only a person can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<String>,
    /// The paths of the file list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// The paths that the list had when the work began: those of earlier work, which need not change again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files_before: Vec<String>,
    /// The lines that name files, if the file was not there when the work began: what they name may be deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub naming_lines: Vec<String>,
}

/// A task of a story.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskFact {
    pub text: String,
    pub done: bool,
    /// The criteria that it serves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<u32>,
}

/// Writes into the files of a story. What is there already is not written again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WriteStory {
    #[serde(flatten)]
    pub place: StoryPlace,
    pub story: StoryName,
    /// The stage for the board and for the story's file.
    pub stage: StoryStage,
    /// What the user says was done: it is written into the story's file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirmed: Vec<String>,
    /// Findings that are left: they go under the story's review follow-ups and into the ledger of deferred work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow_ups: Vec<StoryFollowUp>,
    /// A workspace whose versions of files that git ignores are copied to the place first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_over_from: Option<String>,
    /// The frozen content of the workspace that is written into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
}

/// Puts the board of a workspace back to what it was in the commit that the work began with. A board that git ignores stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RestoreBoard {
    pub workspace: String,
    pub story: StoryName,
}

/// A finding that a story leaves for later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StoryFollowUp {
    pub severity: Severity,
    pub text: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl StoryFollowUp {
    /// Describes it in one line: `critical (src/a.rs:3): the sum is wrong`.
    pub fn describe(&self) -> String {
        match self.place.as_str() {
            "" => format!("{}: {}", self.severity, self.text),
            place => format!("{} ({place}): {}", self.severity, self.text),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum StoryWriting {
    Written {
        /// The files that were written, or had that content already.
        paths: Vec<String>,
        /// What could not be written, one line each; the rest is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remarks: Vec<String>,
        /// The frozen content with what was written, if frozen content was written into.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<TreeId>,
    },
    Failed {
        #[serde(flatten)]
        fault: Fault,
    },
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn only_whole_directories_are_bookkeeping() {
        let story = StoryName {
            key: "1-1-a".into(),
            title: String::new(),
            board: Some("status.yaml".into()),
            bookkeeping: vec!["_bmad-output".into(), "docs/".into()],
        };
        for (path, expected) in [
            ("_bmad-output/stories/1-1-a.md", true),
            ("docs/a.md", true),
            ("status.yaml", true),
            ("docs-site/a.md", false),
            ("src/docs/a.md", false),
        ] {
            assert_eq!(story.is_bookkeeping(path), expected, "{path}");
        }
    }
}

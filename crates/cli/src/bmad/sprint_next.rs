//! The next step of a sprint with its reason: a command for an agent or, if a run has the story already, one for that run.

use tribunal_bmad::{
    board::{
        Board,
        next_action::{self, NextBoardActionKind},
    },
    commands::{self, BmadStep, StepCommand},
    keys::BoardKey,
};
use tribunal_json::{Serialize, schemars};

use super::{
    BmadProject,
    sprint_runs::{SprintRuns, StoryClaim},
};

/// How many decisions of a run are named.
const MAX_SHOWN_DECISIONS: usize = 3;

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct SprintNextStep {
    pub what: NextBoardActionKind,
    pub key: BoardKey,
    pub reason: String,
    /// The prompt that starts it in an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The reason why there is no command, and what to do instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instead: Option<String>,
    /// The run that has the story already: then nothing is to be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<StoryClaim>,
}

impl SprintNextStep {
    /// The step in one line.
    pub fn describe_step(&self) -> String {
        match &self.claim {
            Some(claim) => describe_claim(&self.key, claim),
            None => format!("{} {} ({})", self.what.as_str(), self.key, self.reason),
        }
    }

    /// What to type, line by line.
    pub fn list_commands(&self, program_name: &str) -> Vec<String> {
        if let Some(claim) = &self.claim {
            return list_claim_commands(claim, program_name);
        }
        let command_text = self.command.as_deref().or(self.instead.as_deref()).unwrap_or_default();
        command_text.lines().filter(|command_line| !command_line.is_empty()).map(String::from).collect()
    }
}

/// Says what the user has to do about a story that a run has.
fn describe_claim(story_key: &BoardKey, claim: &StoryClaim) -> String {
    let run = &claim.run;
    match (claim.waiting, claim.decisions.as_slice()) {
        (false, _) => format!("nothing to start for {story_key}: run {run} works on it"),
        (true, []) => format!("resume run {run}, which waits with {story_key}"),
        (true, decisions) => {
            let decision_ids: Vec<&str> =
                decisions.iter().take(MAX_SHOWN_DECISIONS).map(|decision_id| decision_id.as_str()).collect();
            format!("answer {} of run {run}, which waits with {story_key}", decision_ids.join(", "))
        }
    }
}

fn list_claim_commands(claim: &StoryClaim, program_name: &str) -> Vec<String> {
    let StoryClaim { run, root, waiting, decisions } = claim;
    match (*waiting, decisions.is_empty()) {
        (false, _) => vec![format!("{program_name} status {run}")],
        (true, true) => vec![format!("{program_name} resume {root}")],
        (true, false) => {
            let shown_decisions = decisions.iter().take(MAX_SHOWN_DECISIONS);
            shown_decisions.map(|decision_id| format!("{program_name} decisions {run}.{decision_id}")).collect()
        }
    }
}

/// Finds the next step with the command that does it.
pub(super) fn find_next_step(
    bmad_project: &BmadProject,
    board: &Board,
    sprint_runs: &SprintRuns<'_>,
) -> Option<SprintNextStep> {
    let find_command = |workflow_step: BmadStep| {
        commands::find_command(
            &bmad_project.layout,
            workflow_step,
            bmad_project.command_client(),
            &bmad_project.project_files,
        )
    };
    // Without an installed workflow for new stories, suggesting one would be useless. Without BMAD nothing is known about it.
    let can_create = !matches!(find_command(BmadStep::CreateStory), StepCommand::Missing { .. })
        || bmad_project.layout.era.is_none();
    let mut next_action = next_action::find_next_action(board, can_create)?;
    // A story whose file exists is not written again.
    if let (NextBoardActionKind::CreateStory, BoardKey::Story(story_key)) = (next_action.what, &next_action.key)
        && bmad_project.find_story_file(story_key).is_some()
    {
        next_action.what = NextBoardActionKind::Develop;
        next_action.reason = "first in the backlog, and its story file exists".into();
    }
    // A story that is ready needs its file where files are written.
    if let (NextBoardActionKind::Develop, BoardKey::Story(story_key)) = (next_action.what, &next_action.key)
        && can_create
        && bmad_project.layout.era.is_some()
        && bmad_project.find_story_file(story_key).is_none()
    {
        next_action.what = NextBoardActionKind::CreateStory;
        next_action.reason = format!("{}, but it has no story file", next_action.reason);
    }
    let workflow_step = match next_action.what {
        NextBoardActionKind::CreateStory => BmadStep::CreateStory,
        NextBoardActionKind::Develop => BmadStep::DevStory,
        NextBoardActionKind::Review => BmadStep::CodeReview,
        NextBoardActionKind::Retrospective => BmadStep::Retrospective,
    };
    let step_argument = match &next_action.key {
        BoardKey::Story(story_key) => bmad_project.find_story_file(story_key).unwrap_or_else(|| story_key.to_string()),
        other_key => other_key.epic_id().map(ToString::to_string).unwrap_or_default(),
    };
    let step_command = find_command(workflow_step);
    let instead = match &step_command {
        StepCommand::Missing { why: reason, instead, .. } => Some(format!("{reason}; {instead}")),
        _ => None,
    };
    let next_step = SprintNextStep {
        what: next_action.what,
        key: next_action.key,
        reason: next_action.reason,
        command: step_command.to_prompt(&step_argument),
        instead,
        claim: None,
    };
    let board_entry = board.find_entry(&next_step.key);
    let claim = board_entry.and_then(|board_entry| sprint_runs.find_claim(&board_entry.raw_key));
    Some(match claim {
        Some(claim) => replace_command(next_step, claim),
        None => next_step,
    })
}

/// Replaces the command of a step whose story a run has already: to start it as well would be to do the work twice.
fn replace_command(next_step: SprintNextStep, claim: StoryClaim) -> SprintNextStep {
    let verb = if claim.waiting { "waits with it" } else { "works on it" };
    let commands = list_claim_commands(&claim, "tribunal").join("`, `");
    SprintNextStep {
        reason: format!("{}; run {} {verb}", next_step.reason, claim.run),
        command: None,
        instead: Some(format!("run {} {verb}; `{commands}`", claim.run)),
        claim: Some(claim),
        ..next_step
    }
}

#[cfg(test)]
mod tests {
    use tribunal_engine::ids::{DecisionId, RunId};

    use super::*;

    #[test]
    fn a_story_that_a_run_has_is_not_started_again() {
        let step = SprintNextStep {
            what: NextBoardActionKind::Develop,
            key: BoardKey::parse("1-2-sift").unwrap(),
            reason: "already in progress".into(),
            command: Some("/bmad-dev-story 1-2-sift".into()),
            instead: None,
            claim: None,
        };
        assert_eq!(step.describe_step(), "develop 1-2-sift (already in progress)");
        assert_eq!(step.list_commands("tribunal"), ["/bmad-dev-story 1-2-sift"]);
        let claim = |waiting: bool, decisions: &[&str]| StoryClaim {
            run: RunId::new("story-a"),
            root: RunId::new("sprint-b"),
            waiting,
            decisions: decisions.iter().copied().map(DecisionId::new).collect(),
        };
        for (claim, expected_line, expected_command) in [
            (
                claim(true, &["D2"]),
                "answer D2 of run story-a, which waits with 1-2-sift",
                "tribunal decisions story-a.D2",
            ),
            (claim(true, &[]), "resume run story-a, which waits with 1-2-sift", "tribunal resume sprint-b"),
            (claim(false, &[]), "nothing to start for 1-2-sift: run story-a works on it", "tribunal status story-a"),
        ] {
            assert_eq!(describe_claim(&step.key, &claim), expected_line);
            assert_eq!(list_claim_commands(&claim, "tribunal"), [expected_command]);
        }
        let claimed_step = replace_command(step, claim(true, &["D2"]));
        assert_eq!(claimed_step.command, None);
        assert_eq!(claimed_step.list_commands("tribunal"), ["tribunal decisions story-a.D2"]);
        let instead = "run story-a waits with it; `tribunal decisions story-a.D2`";
        assert_eq!(claimed_step.instead.as_deref(), Some(instead));
    }
}

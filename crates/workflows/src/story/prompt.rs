//! What a session is told.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use crate::{
    runs::settings::Settings,
    story::{
        order::{StoryOrder, StorySteps},
        state::{StoryState, StoryStep, StoryWork},
    },
    tasks::instructions::{BriefMaterial, InstructionBrief, TaskOpening},
};
use tribunal_engine::text::truncate_chars;

/// The most characters of the output of one failing check.
const MAX_CHECK_CHARS: usize = 1_500;

/// Builds the brief of the next session.
pub(super) fn build_brief(
    order: &StoryOrder,
    settings: &Settings,
    state: &StoryState,
    work: &StoryWork,
) -> InstructionBrief {
    let story_text = match &work.story_file {
        Some(path) => format!("The story is {} ({path}).", order.story.key),
        None => format!("The story is {}.", order.story.key),
    };
    let mut lines = Vec::from([
        story_text,
        String::from(
            "No one answers questions: do not wait for input, and take the recommended choice wherever you are asked for one.",
        ),
    ]);
    lines.extend(order.story.board.iter().map(|board| {
        format!(
            "Do not change the board, {board}, even if your workflow says so: the program that started you updates it."
        )
    }));
    lines.extend(match state.step {
        StoryStep::Create => create_rules(),
        _ => develop_rules(order, settings, work),
    });
    if !state.attempts.problems.is_empty() {
        lines.push(String::from("The last session left these problems. Solve them first:"));
        lines.extend(state.attempts.problems.iter().map(|problem| format!("- {}", problem.describe())));
    }
    let material = state.attempts.failed_checks.iter().map(|result| BriefMaterial {
        name: format!("output of `{}`", result.command),
        text: truncate_chars(&result.output, MAX_CHECK_CHARS),
    });
    // An agent has written it: it is no instruction.
    let lessons = (!order.texts.lessons.is_empty()).then(|| BriefMaterial {
        name: String::from("what the retrospectives of earlier epics say"),
        text: order.texts.lessons.join("\n"),
    });
    InstructionBrief {
        title: format!("{} {}", state.step.step_name(), order.story.key),
        opening: find_opening(&order.steps, state.step, work.story_file.as_deref()).map(Box::new),
        text: lines.join("\n"),
        material: material.chain(lessons).collect(),
        said: order.texts.said.iter().cloned().chain(state.dialog.remark_lines()).collect(),
        ..InstructionBrief::default()
    }
}

fn find_opening(steps: &StorySteps, step: StoryStep, story_file: Option<&str>) -> Option<TaskOpening> {
    match step {
        StoryStep::Create => steps.create.clone(),
        StoryStep::CodeReview => steps.code_review.clone(),
        _ => {
            let mut opening = steps.develop.clone();
            if let (Some(words), Some(path)) = (&steps.words_until_spec, story_file) {
                opening.text = opening.text.replace(words, path);
                for command in &mut opening.commands {
                    command.text = command.text.replace(words, path);
                }
            }
            Some(opening)
        }
    }
}

fn create_rules() -> Vec<String> {
    Vec::from([String::from(
        "Write only the story's file, with acceptance criteria and tasks, and the status ready-for-dev. Change no code.",
    )])
}

fn develop_rules(order: &StoryOrder, settings: &Settings, work: &StoryWork) -> Vec<String> {
    let mut lines = Vec::new();
    if order.steps.develops_from_spec {
        lines.push(String::from("Commit your work if your workflow says so; never push."));
    } else {
        lines.push(String::from(
            "Tick a task only when it is done. List every file that you changed in the story's file list, and no other. Set the \
             story's status to review when everything is done. Do not commit and do not push.",
        ));
        lines.push(String::from(
            "Every acceptance criterion needs a new or changed test that names it, such as AC1: in the name or the text of the test \
             function, or in a comment directly above it. The test has to assert something. Where a test makes no sense, write \
             `AC1: no test: REASON` into the completion notes.",
        ));
    }
    lines.push(String::from(
        "If the story needs something that only a human can do, such as buying a domain or granting a key, do everything else and \
         list it in the story's file under `## Operator Actions`, one line `- [ ] WHAT` each.",
    ));
    lines.push(format!("Keep notes for later sessions in {} (decisions, blockers); read them first.", work.scratchpad));
    if !settings.checks.is_empty() {
        let commands: Vec<String> = settings.checks.iter().map(|check| format!("`{}`", check.command)).collect();
        lines.push(format!("These checks must pass: {}.", commands.join(", ")));
    }
    lines
}

/// Returns the last line of a text that says something, for screens: agents begin with what they are about to do.
pub(super) fn summarize_line(text: &str) -> String {
    // A fence or a rule at the end says nothing.
    let has_words = |line: &&str| line.chars().any(char::is_alphanumeric);
    let last_line = text.lines().rev().map(str::trim).find(has_words).unwrap_or_default();
    truncate_chars(last_line, 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::instructions::ClientCommand;

    #[test]
    fn the_last_line_says_what_the_agent_claims() {
        assert_eq!(summarize_line("I look at the story.\n\nAll tasks are done.\n```\n"), "All tasks are done.");
        assert_eq!(summarize_line("\n---\n"), "");
    }

    #[test]
    fn a_workflow_that_has_written_its_spec_continues_with_it() {
        let words = "story 1-2-sift: Sift";
        let command = ClientCommand { client: String::from("claude-code"), text: format!("/bmad-build-auto {words}") };
        let steps = StorySteps {
            develop: TaskOpening { commands: Vec::from([command]), text: format!("Develop {words}.") },
            words_until_spec: Some(String::from(words)),
            ..StorySteps::default()
        };
        let opening_for = |file: Option<&str>| find_opening(&steps, StoryStep::Develop, file).unwrap_or_default();
        assert_eq!(opening_for(None), steps.develop);
        let opening = opening_for(Some("artifacts/spec-1-2-sift.md"));
        assert_eq!(opening.text, "Develop artifacts/spec-1-2-sift.md.");
        assert_eq!(opening.command_for("claude-code"), Some("/bmad-build-auto artifacts/spec-1-2-sift.md"));
    }
}

//! How the steps of a story are run: by the commands that are installed in the project, or by words that say the same.

use tribunal_bmad::{
    commands::{self, BmadStep, StepCommand},
    layout::Era,
};
use tribunal_core::{
    engine::{settings::Settings, tier::ProcessTier},
    story::order::StorySteps,
    tasks::{
        client::ModelSize,
        instructions::{ClientCommand, TaskOpening},
    },
};

use super::selection::ChosenStory;
use crate::{bmad::BmadProject, messages::user_errors::UserError};

/// Finds out how the steps are run.
pub(super) fn find_steps(
    bmad: &BmadProject,
    chosen: &ChosenStory,
    settings: &Settings,
) -> Result<StorySteps, UserError> {
    let finder = StepFinder { bmad, settings };
    let has_file = chosen.files.story_file.is_some();
    let story_subject = chosen.files.story_file.clone().unwrap_or_else(|| bmad.new_story_path(&chosen.key));
    // Late versions develop from a spec that the same workflow writes.
    let develops_from_spec =
        bmad.layout.era == Some(Era::D) && finder.has_step(BmadStep::DevStory) && !is_story_file(chosen);
    let create = match (has_file, finder.has_step(BmadStep::CreateStory)) {
        (true, _) => None,
        (false, true) if !develops_from_spec => Some(finder.find_opening(BmadStep::CreateStory, &chosen.name.key, "")),
        (false, _) if develops_from_spec => None,
        (false, _) => {
            return Err(UserError::usage(format!("story {} has no file", chosen.name.key))
                .with_reason("No workflow of this project writes it. Nothing was started.")
                .with_step(format!("write it: {}", bmad.new_story_path(&chosen.key)))
                .with_step("or install BMAD's workflows: `npx bmad-method install`"));
        }
    };
    let subject = if develops_from_spec && !has_file {
        format!("story {}: {}", chosen.name.key, chosen.name.title)
    } else {
        story_subject.clone()
    };
    let own_words = format!(
        "Develop the story in {story_subject}: do every task, meet every acceptance criterion, write tests, and keep the file up to \
         date."
    );
    let code_review = finder.has_step(BmadStep::CodeReview).then(|| {
        finder.find_opening(BmadStep::CodeReview, &format!("{story_subject} (fix every issue without asking)"), "")
    });
    Ok(StorySteps {
        create,
        develop: finder.find_opening(BmadStep::DevStory, &subject, &own_words),
        code_review,
        develops_from_spec,
    })
}

/// Whether the story has a file of its own, and not only a spec.
fn is_story_file(chosen: &ChosenStory) -> bool {
    let file_name = chosen.files.story_file.as_deref().and_then(|path| path.rsplit('/').next());
    file_name.is_some_and(|file_name| !file_name.starts_with("spec-"))
}

struct StepFinder<'a> {
    bmad: &'a BmadProject,
    settings: &'a Settings,
}

impl StepFinder<'_> {
    fn find_command(&self, step: BmadStep, client: &str) -> StepCommand {
        commands::find_command(&self.bmad.layout, step, client, &self.bmad.shelf)
    }

    /// Whether any client can run a step here.
    fn has_step(&self, step: BmadStep) -> bool {
        let clients = self.client_names().into_iter().chain(["codex".to_string()]);
        clients.into_iter().any(|client| !matches!(self.find_command(step, &client), StepCommand::Missing { .. }))
    }

    /// The clients of the agents, each once.
    fn client_names(&self) -> Vec<String> {
        let agents = self.settings.agents.iter().chain(&self.settings.reserves);
        let mut names: Vec<String> =
            agents.filter_map(|agent| Some(agent.driver.client_spec()?.client.as_str().to_string())).collect();
        names.dedup();
        names
    }

    fn find_opening(&self, step: BmadStep, subject: &str, own_words: &str) -> TaskOpening {
        // Early versions stop at menus unless they are told not to.
        let subject = match self.bmad.layout.era {
            Some(Era::A | Era::B) => format!("{subject} #yolo"),
            _ => subject.to_string(),
        };
        let commands = self.client_names().into_iter().filter_map(|client| match self.find_command(step, &client) {
            command @ StepCommand::Slash { .. } => Some(ClientCommand { text: command.to_prompt(&subject)?, client }),
            _ => None,
        });
        let words = self.find_command(step, "codex").to_prompt(&subject);
        TaskOpening { commands: commands.collect(), text: words.unwrap_or_else(|| own_words.to_string()) }
    }
}

/// The size of the model that a story is worth: its own complexity, else that of the tier.
pub(super) fn model_size(tier: ProcessTier, complexity: Option<&str>) -> ModelSize {
    let written = complexity.map(str::to_lowercase).unwrap_or_default();
    let first_word = written.split(|character: char| !character.is_alphanumeric()).next().unwrap_or_default();
    match first_word {
        "xs" | "s" | "small" | "low" | "simple" | "trivial" | "1" | "2" => ModelSize::Small,
        "m" | "medium" | "moderate" | "3" | "5" => ModelSize::Medium,
        "l" | "xl" | "xxl" | "large" | "high" | "complex" | "8" | "13" | "21" => ModelSize::Large,
        _ => match tier.to_string().as_str() {
            "0" | "1" => ModelSize::Small,
            "4" => ModelSize::Large,
            _ => ModelSize::Medium,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_complexity_of_a_story_decides_before_the_tier() {
        let tier = ProcessTier::default();
        for (complexity, expected) in [
            (Some("S"), ModelSize::Small),
            (Some("3 points"), ModelSize::Medium),
            (Some("High"), ModelSize::Large),
            (Some("13"), ModelSize::Large),
        ] {
            assert_eq!(model_size(tier, complexity), expected, "{complexity:?}");
        }
        assert_eq!(model_size(tier, Some("unclear")), model_size(tier, None));
    }
}

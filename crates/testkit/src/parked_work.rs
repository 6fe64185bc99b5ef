//! Work that is in the user's checkout, or parked: no effect may use its files while it is parked.

use tribunal_engine::ids::CommitId;
use tribunal_workflows::{
    development::parking::{ParkMode, ParkOutcome, ParkWork},
    runs::effect::{Effect, Reply},
};

use crate::{dice::Dice, story_world::StoryScript};

/// Whether the work is parked.
#[derive(Debug, Default)]
pub(crate) struct ParkedWork {
    is_parked: bool,
}

impl ParkedWork {
    /// Panics if an effect uses files that are not in the checkout.
    pub fn check_effect(&self, effect: &Effect) {
        let uses_files = matches!(
            effect,
            Effect::Ask(_)
                | Effect::Checks(_)
                | Effect::Commit(_)
                | Effect::Integrate(_)
                | Effect::ReadStory(_)
                | Effect::WriteStory(_)
                | Effect::RestoreBoard(_)
                | Effect::RunChild(_)
        );
        assert!(!self.is_parked || !uses_files, "the work is parked: {effect:?}");
    }

    /// Moves the work. Attempts to put it back fail as the script says, or sometimes by chance.
    pub fn move_work(&mut self, park: &ParkWork, script: &mut StoryScript, dice: &mut Dice) -> Reply {
        let outcome = match park.mode {
            ParkMode::Park => ParkOutcome::Parked { commit: CommitId::new("commit1"), left: Vec::new() },
            ParkMode::Return | ParkMode::TakeCheckout => self.return_work(script, dice),
        };
        match outcome {
            ParkOutcome::Parked { .. } => self.is_parked = true,
            ParkOutcome::Returned { .. } => self.is_parked = false,
            _ => {}
        }
        Reply::ParkWork(outcome)
    }

    fn return_work(&self, script: &mut StoryScript, dice: &mut Dice) -> ParkOutcome {
        if self.is_parked && !script.returns.is_empty() {
            return script.returns.remove(0);
        }
        let is_random = self.is_parked && script.sessions.is_empty();
        let paths = vec!["a.txt".to_string()];
        let roll = if is_random { dice.roll(10) } else { 9 };
        match roll {
            0 => ParkOutcome::InTheWay { paths },
            1 => ParkOutcome::Conflict { paths },
            _ => ParkOutcome::Returned { base: CommitId::new("base"), commit: CommitId::new("commit1") },
        }
    }
}

//! Asks the open decisions of a run that has just stopped, on the terminal where it was shown, and resumes it with the answers.
//!
//! Answers are recorded exactly as `tribunal decisions` records them. Without a terminal nothing is asked: the run's last lines
//! name the commands instead.

use std::io::{Write, stderr};

use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    ids::{DecisionId, RunId},
    reason::{RunOutcome, RunReason},
};
use tribunal_report::{TextStyle, escape_line};
use tribunal_runner::Project;
use tribunal_store::Store;
use tribunal_workflows::{
    review::topic::ReviewTopic,
    runs::{
        types::{Decision, find_topic},
        view::RunPhase,
    },
};

use super::{
    answers::{self, AskingRun, NamedDecision},
    collect_diffs,
};
use crate::{
    clients::agent_session,
    commands::{diff::write_diff, say},
    context::CommandContext,
    messages::user_errors::UserError,
    runs::engine::{RunEnd, RunJob, execute_run},
    settings::ThroughputLimits,
    terminal::{
        self,
        prompt::{PromptInput, TerminalPrompt},
    },
};

/// A run that this command has shown until it ended or stopped.
pub(in crate::commands) struct StoppedRun {
    pub project: Project,
    pub run_end: RunEnd,
    pub concurrency: ThroughputLimits,
}

/// How a run ended after its questions were asked.
pub(in crate::commands) struct AnsweredRun {
    pub run_end: RunEnd,
    /// The user does not want to be asked anything more.
    pub has_quit: bool,
}

/// Asks what the run waits for and resumes it, until it asks nothing more or the user quits.
pub(in crate::commands) fn answer_in_place(
    context: &CommandContext,
    stopped_run: StoppedRun,
) -> Result<AnsweredRun, UserError> {
    let StoppedRun { project, mut run_end, concurrency } = stopped_run;
    let mut has_quit = false;
    while can_ask_here(context) {
        let Some(asking_run) = read_waiting_run(&project, &run_end.run_id)? else { break };
        let Some(terminal_prompt) = TerminalPrompt::open() else { break };
        let mut questioner = Questioner { context, project: &project, run_id: &run_end.run_id, terminal_prompt };
        if questioner.ask_all(&asking_run)? == AskingEnd::Quit {
            has_quit = true;
            break;
        }
        // The terminal has to be free again before the view of the run takes it.
        drop(questioner);
        let run_job = RunJob::Resume(run_end.run_id.clone(), None);
        run_end = execute_run(context, project.clone(), run_job, run_end.display_mode, concurrency)?;
    }
    // A user who interrupts a resumed run wants no further questions either.
    has_quit |= run_end.reason == RunReason::Stopped;
    Ok(AnsweredRun { run_end, has_quit })
}

/// Returns whether a user sits in front of this terminal. A session of an agent is not the user.
pub(in crate::commands) fn can_ask_here(context: &CommandContext) -> bool {
    // A user who asked for silence wants no questions either.
    context.can_ask()
        && !context.is_silent()
        && terminal::is_in_foreground()
        && agent_session::current_session(context).is_none()
}

/// Reads a run that has stopped because the user has to decide something. `None` if it waits for nothing.
fn read_waiting_run(project: &Project, run_id: &RunId) -> Result<Option<AskingRun>, UserError> {
    let store = Store::open_read_only(&project.home_dir())?;
    let run_view = store.read_view(run_id)?;
    let RunPhase::Parked(summary) = &run_view.phase else { return Ok(None) };
    // A run that was interrupted or whose environment failed has other problems than its questions, and one whose findings a
    // session fixes usually needs no answer.
    let is_waiting = matches!(summary.outcome, Some(RunOutcome::Waiting | RunOutcome::Halted))
        && summary.reason != RunReason::InSession;
    let asking_run = AskingRun::from_view(&store, project, run_view)?;
    let has_question = asking_run.unanswered_decisions().next().is_some();
    Ok((is_waiting && has_question).then_some(asking_run))
}

/// How asking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskingEnd {
    /// Every decision has an answer.
    Answered,
    Quit,
}

/// Asks the decisions of one run.
struct Questioner<'a> {
    context: &'a CommandContext,
    project: &'a Project,
    run_id: &'a RunId,
    terminal_prompt: TerminalPrompt,
}

impl Questioner<'_> {
    fn ask_all(&mut self, asking_run: &AskingRun) -> Result<AskingEnd, UserError> {
        let mut answered_names: Vec<String> = Vec::new();
        for decision in asking_run.unanswered_decisions() {
            let Some(answer) = self.ask_decision(decision)? else {
                self.print_quit_note(&answered_names)?;
                return Ok(AskingEnd::Quit);
            };
            // A question may have stood here for days, and the user has other terminals.
            let Some(current_run) = self.read_current_run(&decision.id)? else {
                writeln!(stderr(), "note: {} was answered elsewhere in the meantime", decision.id)?;
                return Ok(AskingEnd::Quit);
            };
            let named_decision = NamedDecision { run_id: self.run_id.clone(), decision, asking_run: &current_run };
            answers::record_answer(self.context, self.project, &named_decision, answer)?;
            answered_names.push(decision.id.to_string());
        }
        Ok(AskingEnd::Answered)
    }

    /// Reads the run again. `None` if it no longer waits for an answer to this decision.
    fn read_current_run(&self, decision_id: &DecisionId) -> Result<Option<AskingRun>, UserError> {
        let current_run = read_waiting_run(self.project, self.run_id)?;
        Ok(current_run
            .filter(|current_run| current_run.unanswered_decisions().any(|decision| decision.id == *decision_id)))
    }

    /// Shows a decision and asks until there is an answer. `None` if the user quits.
    fn ask_decision(&mut self, decision: &Decision) -> Result<Option<DecisionAnswer>, UserError> {
        let diff_texts = collect_diffs(self.project, self.run_id, decision)?;
        let question_form = QuestionForm { decision, has_diff: !diff_texts.is_empty() };
        let screen = &self.context.progress_screen;
        let full_name = escape_line(&format!("{}.{}", self.run_id, decision.id));
        writeln!(stderr(), "\n{}", screen.paint(TextStyle::Bold, &full_name))?;
        writeln!(stderr(), "{}", screen.wrap_text(2, &decision.question))?;
        if !question_form.is_patch() {
            self.print_options(&question_form)?;
        }
        loop {
            let PromptInput::Line(typed_text) = self.terminal_prompt.read_answer(&question_form.prompt_text())? else {
                return Ok(None);
            };
            match question_form.parse_typed(&typed_text) {
                Some(TypedAnswer::Choose(choice_key)) => return self.ask_note(choice_key),
                Some(TypedAnswer::Quit) => return Ok(None),
                Some(TypedAnswer::ShowDiff) => {
                    for diff_text in &diff_texts {
                        write_diff(&mut stderr().lock(), screen, diff_text)?;
                    }
                }
                None => self.print_options(&question_form)?,
            }
        }
    }

    /// Asks for a note where one is useful. `None` if the user quits instead.
    fn ask_note(&mut self, choice_key: ChoiceKey) -> Result<Option<DecisionAnswer>, UserError> {
        let choice = choice_key.to_string();
        let note_prompt = match choice_key {
            ChoiceKey::Reject | ChoiceKey::Retry | ChoiceKey::Uphold => "Note for the fixer (press Enter for none):",
            ChoiceKey::Agent => "Note for the agent (press Enter for none):",
            ChoiceKey::Dismiss | ChoiceKey::Defer => "Reason (press Enter for none):",
            ChoiceKey::Approve
            | ChoiceKey::Keep
            | ChoiceKey::Restore
            | ChoiceKey::Fixers
            | ChoiceKey::Accept
            | ChoiceKey::More
            | ChoiceKey::End
            | ChoiceKey::Hand
            | ChoiceKey::Skip
            | ChoiceKey::Done => return Ok(Some(DecisionAnswer { choice, note: String::new() })),
        };
        loop {
            let PromptInput::Line(note) = self.terminal_prompt.read_answer(note_prompt)? else { return Ok(None) };
            match say::check_brief_text(&note) {
                Ok(()) => return Ok(Some(DecisionAnswer { choice, note })),
                Err(user_error) => write!(stderr(), "{user_error}")?,
            }
        }
    }

    /// Lists what can be typed.
    fn print_options(&self, question_form: &QuestionForm<'_>) -> Result<(), UserError> {
        let screen = &self.context.progress_screen;
        let options = question_form.list_options();
        let typed_width = options.iter().map(|option| option.typed.len()).max().unwrap_or(0);
        for PromptOption { typed, meaning } in &options {
            let meaning_text = screen.wrap_text(typed_width + 4, meaning);
            writeln!(stderr(), "  {typed:<typed_width$}  {}", meaning_text.trim_start())?;
        }
        Ok(())
    }

    /// Says how to continue later.
    fn print_quit_note(&self, answered_names: &[String]) -> Result<(), UserError> {
        let run_id = escape_line(self.run_id.as_str());
        let resume_command = format!("{} resume {run_id}", self.context.progress_screen.program_name);
        match answered_names {
            [] => writeln!(stderr(), "note: run {run_id} is waiting for you; to continue: `{resume_command}`")?,
            _ => writeln!(
                stderr(),
                "note: {} answered, not applied yet; to continue: `{resume_command}`",
                answered_names.join(", ")
            )?,
        }
        Ok(())
    }
}

/// How a decision is asked at a prompt.
struct QuestionForm<'a> {
    decision: &'a Decision,
    /// Whether there is a diff to show.
    has_diff: bool,
}

/// Something that can be typed at a prompt.
struct PromptOption {
    typed: String,
    meaning: String,
}

/// What the user typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TypedAnswer {
    Choose(ChoiceKey),
    ShowDiff,
    Quit,
}

impl QuestionForm<'_> {
    fn is_patch(&self) -> bool {
        matches!(find_topic::<ReviewTopic>(&self.decision.about), Some(ReviewTopic::Patch { .. }))
    }

    /// The question with the short answers: `Apply this patch? [y/n/d/q]`.
    fn prompt_text(&self) -> String {
        let diff_letter = if self.has_diff { "/d" } else { "" };
        match self.decision.choices.len() {
            _ if self.is_patch() => format!("Apply this patch? [y/n{diff_letter}/q]"),
            1 => format!("Your answer? [1{diff_letter}/q]"),
            choice_count => format!("Your answer? [1-{choice_count}{diff_letter}/q]"),
        }
    }

    /// Interprets a line. Choices are typed by their number or their key, and those of a patch by a letter. A misspelt key is
    /// not guessed: an answer decides about the run.
    fn parse_typed(&self, typed_text: &str) -> Option<TypedAnswer> {
        let typed_text = typed_text.to_lowercase();
        let choices = &self.decision.choices;
        let find_choice = |choice_key: ChoiceKey| {
            let offered_choice = choices.iter().find(|offered_choice| offered_choice.key == choice_key);
            offered_choice.map(|offered_choice| TypedAnswer::Choose(offered_choice.key))
        };
        match typed_text.as_str() {
            "q" | "quit" => Some(TypedAnswer::Quit),
            "d" | "diff" if self.has_diff => Some(TypedAnswer::ShowDiff),
            "y" | "yes" if self.is_patch() => find_choice(ChoiceKey::Approve),
            "n" | "no" if self.is_patch() => find_choice(ChoiceKey::Reject),
            _ => match typed_text.parse::<usize>() {
                Ok(choice_number) if !self.is_patch() => {
                    choices.get(choice_number.checked_sub(1)?).map(|choice| TypedAnswer::Choose(choice.key))
                }
                _ => ChoiceKey::parse(&typed_text).and_then(find_choice),
            },
        }
    }

    /// Lists everything that can be typed.
    fn list_options(&self) -> Vec<PromptOption> {
        let is_patch = self.is_patch();
        let choice_options = self.decision.choices.iter().enumerate().map(|(choice_index, choice)| PromptOption {
            typed: match choice.key {
                ChoiceKey::Approve if is_patch => "y".into(),
                ChoiceKey::Reject if is_patch => "n".into(),
                choice_key if is_patch => choice_key.to_string(),
                choice_key => format!("{}  {choice_key}", choice_index + 1),
            },
            meaning: choice.label.clone(),
        });
        let new_option = |typed: &str, meaning: &str| PromptOption { typed: typed.into(), meaning: meaning.into() };
        let diff_option = self.has_diff.then(|| new_option("d", "show the diff"));
        let quit_option = new_option("q", "quit and answer later");
        choice_options.chain(diff_option).chain([quit_option]).collect()
    }
}

#[cfg(test)]
mod tests {
    use tribunal_engine::{
        files::Patch,
        ids::{FindingId, Hash, Key},
    };

    use tribunal_workflows::review::questions;

    use super::*;

    fn patch_decision() -> Decision {
        let patch = Patch { hash: Hash::new("patch"), files: vec!["plan.md".into()], diff: Hash::new("diff") };
        questions::ask_about_patch(
            DecisionId::new("D1"),
            &Key::for_user_wait(),
            &patch,
            vec![FindingId(1)],
            "apply?".into(),
        )
    }

    fn blocked_decision() -> Decision {
        questions::ask_about_blocked_finding(DecisionId::new("D1"), FindingId(1), "F1: fast is vague".into())
    }

    #[test]
    fn a_patch_is_answered_by_letter_or_key() {
        let decision = patch_decision();
        let question_form = QuestionForm { decision: &decision, has_diff: true };
        assert_eq!(question_form.prompt_text(), "Apply this patch? [y/n/d/q]");
        for (typed_text, expected_answer) in [
            ("y", Some(TypedAnswer::Choose(ChoiceKey::Approve))),
            ("Yes", Some(TypedAnswer::Choose(ChoiceKey::Approve))),
            ("n", Some(TypedAnswer::Choose(ChoiceKey::Reject))),
            ("defer", Some(TypedAnswer::Choose(ChoiceKey::Defer))),
            ("d", Some(TypedAnswer::ShowDiff)),
            ("q", Some(TypedAnswer::Quit)),
            // Nothing else is an answer, above all not an empty line.
            ("", None),
            ("1", None),
            ("restore", None),
            ("?", None),
        ] {
            assert_eq!(question_form.parse_typed(typed_text), expected_answer, "{typed_text}");
        }
    }

    #[test]
    fn other_decisions_are_answered_by_number_or_key() {
        let decision = blocked_decision();
        let question_form = QuestionForm { decision: &decision, has_diff: false };
        assert_eq!(question_form.prompt_text(), "Your answer? [1-3/q]");
        for (typed_text, expected_answer) in [
            ("1", Some(TypedAnswer::Choose(ChoiceKey::Retry))),
            ("3", Some(TypedAnswer::Choose(ChoiceKey::Defer))),
            ("dismiss", Some(TypedAnswer::Choose(ChoiceKey::Dismiss))),
            ("q", Some(TypedAnswer::Quit)),
            // `d` could mean dismiss or defer, and there is no diff.
            ("d", None),
            ("y", None),
            ("0", None),
            ("4", None),
        ] {
            assert_eq!(question_form.parse_typed(typed_text), expected_answer, "{typed_text}");
        }
        let typed_options: Vec<String> = question_form.list_options().into_iter().map(|option| option.typed).collect();
        assert_eq!(typed_options, ["1  retry", "2  dismiss", "3  defer", "q"]);
    }
}

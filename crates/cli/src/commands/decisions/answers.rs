//! Finds the decision that the user means, and records, replaces or refuses an answer.
//!
//! An answer is *given* until its run reads it, and *used* from then on. Given answers are in the run's inbox or in the file of
//! the decision; used ones are in the journal.

use std::io::{Write, stderr};

use tribunal_engine::{
    answer::{ChoiceKey, DecisionAnswer},
    ids::{DecisionId, RunId},
};
use tribunal_report::escape_line;
use tribunal_runner::{Project, Runner, session::loop_runs::LoopAnswer};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{
        kinds::WorkflowTopic,
        types::{Decision, DecisionTopic},
        user_request::UserRequest,
        view::{RunPhase, RunView},
    },
    session::order::SessionTopic,
};

use crate::{
    clients::agent_session,
    commands::{runs as listed_runs, say, session_loops},
    context::CommandContext,
    messages::user_errors::UserError,
    runs::user_requests,
    settings::nearest_name,
};

/// A run, which may have open decisions.
pub(super) struct AskingRun {
    pub run_view: RunView,
    /// The answers that the run has not used yet.
    pub given_answers: Vec<GivenAnswer>,
}

/// An answer that the run has not used yet.
pub(super) struct GivenAnswer {
    pub decision_id: DecisionId,
    pub answer: DecisionAnswer,
    place: AnswerPlace,
}

/// Where an answer waits for its run.
enum AnswerPlace {
    /// In the inbox, with this number.
    Inbox(i64),
    /// In the file of the decision.
    File,
}

/// A decision that the user named, and the run that asks it.
pub(super) struct NamedDecision<'a> {
    pub run_id: RunId,
    pub decision: &'a Decision,
    pub asking_run: &'a AskingRun,
}

/// What came of an answer.
pub(super) enum AnswerOutcome {
    /// The run reads the answer at its next step, or when it is resumed.
    Recorded,
    /// The answer to a loop's question took effect at once; this says how.
    LoopAnswered(String),
}

impl AskingRun {
    /// Reads the answers that were given to a run.
    pub fn from_view(store: &Store, project: &Project, run_view: RunView) -> Result<AskingRun, UserError> {
        let mut given_answers = Vec::new();
        let Some(run_id) = &run_view.run_id else { return Ok(AskingRun { run_view, given_answers }) };
        // Until the run reads its inbox, the journal still shows the question as open.
        for stored_request in store.pending_requests(run_id)? {
            if let UserRequest::Answer { decision: decision_id, answer } = stored_request.request {
                given_answers.push(GivenAnswer {
                    decision_id,
                    answer,
                    place: AnswerPlace::Inbox(stored_request.inbox_id),
                });
            }
        }
        for file_request in Runner::answers_in_files(project, &run_view) {
            if let UserRequest::Answer { decision: decision_id, answer } = file_request {
                given_answers.push(GivenAnswer { decision_id, answer, place: AnswerPlace::File });
            }
        }
        Ok(AskingRun { run_view, given_answers })
    }

    /// Returns the answer that the run will use for a decision. The first one counts.
    pub fn find_given_answer(&self, decision_id: &DecisionId) -> Option<&DecisionAnswer> {
        let mut own_answers = self.given_answers.iter().filter(|given| given.decision_id == *decision_id);
        own_answers.next().map(|given| &given.answer)
    }

    /// Returns the open decisions for which no answer was given yet.
    pub fn unanswered_decisions(&self) -> impl Iterator<Item = &Decision> {
        self.run_view.open_decisions().filter(|decision| self.find_given_answer(&decision.id).is_none())
    }
}

impl NamedDecision<'_> {
    /// The name with which the user can refer to the decision anywhere.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.run_id, self.decision.id)
    }

    pub fn given_answer(&self) -> Option<&DecisionAnswer> {
        self.asking_run.find_given_answer(&self.decision.id)
    }
}

/// Collects all runs with their decisions.
pub(super) fn collect_asking_runs(store: &Store, project: &Project) -> Result<Vec<AskingRun>, UserError> {
    let mut asking_runs = Vec::new();
    for (run_view, _) in listed_runs::list_runs(store, project)? {
        asking_runs.push(AskingRun::from_view(store, project, run_view)?);
    }
    Ok(asking_runs)
}

/// Finds a decision by its name: `RUN.D1`, or `D1` alone where only one run asks a D1. Fails if its answer is used.
pub(super) fn find_decision<'a>(
    asking_runs: &'a [AskingRun],
    typed_name: &str,
) -> Result<NamedDecision<'a>, UserError> {
    let mut matching_decisions = Vec::new();
    for asking_run in asking_runs {
        let Some(run_id) = &asking_run.run_view.run_id else { continue };
        for decision in &asking_run.run_view.decisions {
            let named_decision = NamedDecision { run_id: run_id.clone(), decision, asking_run };
            let alias_name = asking_run.run_view.child_alias().map(|alias| format!("{alias}.{}", decision.id));
            if alias_name.is_some_and(|alias_name| typed_name.eq_ignore_ascii_case(&alias_name))
                || typed_name.eq_ignore_ascii_case(&named_decision.full_name())
                || typed_name.eq_ignore_ascii_case(decision.id.as_str())
            {
                matching_decisions.push(named_decision);
            }
        }
    }
    // An id that an earlier run has used does not make the open decision ambiguous.
    let is_open = |named_decision: &NamedDecision<'_>| named_decision.decision.answer.is_none();
    if matching_decisions.iter().any(is_open) {
        matching_decisions.retain(is_open);
    }
    if let [used_decision] = matching_decisions.as_slice()
        && let Some(used_answer) = &used_decision.decision.answer
    {
        return Err(used_answer_error(used_decision, used_answer));
    }
    // Several used decisions of this id are of no interest: the user means an open one.
    matching_decisions.retain(is_open);
    if matching_decisions.len() > 1 {
        let candidate_names: Vec<String> = matching_decisions.iter().map(NamedDecision::full_name).collect();
        return Err(UserError::usage(format!(
            "`{typed_name}` matches several decisions: {}",
            candidate_names.join(", ")
        ))
        .with_step(format!("name the run as well: `tribunal decisions {} ANSWER`", candidate_names[0])));
    }
    matching_decisions.pop().ok_or_else(|| {
        UserError::usage(format!("no open decision named `{typed_name}`"))
            .with_step("list open decisions: `tribunal decisions`")
    })
}

/// The error for a decision whose answer the run has already used.
fn used_answer_error(used_decision: &NamedDecision<'_>, used_answer: &DecisionAnswer) -> UserError {
    let (full_name, run_id) = (used_decision.full_name(), &used_decision.run_id);
    if used_answer.is_withdrawn() {
        return UserError::usage(format!("{full_name} was withdrawn: {}", used_answer.note))
            .with_step("list open decisions: `tribunal decisions`");
    }
    let choice = &used_answer.choice;
    let mut user_error =
        UserError::usage(format!("{full_name} was answered with `{choice}`, and the run has already used the answer"));
    if used_answer.choice_key() == Some(ChoiceKey::Approve) {
        user_error = user_error.with_step(format!("to undo what was applied: `tribunal undo {run_id}`"));
    }
    match used_decision.asking_run.run_view.phase {
        RunPhase::Finished(_) => user_error.with_step("to review again: `tribunal review FILE`"),
        RunPhase::Running | RunPhase::Parked(_) => {
            user_error.with_step(format!("tell its agents what you want instead: `tribunal say {run_id} \"MESSAGE\"`"))
        }
    }
}

/// Records the first answer to a decision.
pub(super) fn record_answer(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
    typed_answer: DecisionAnswer,
) -> Result<AnswerOutcome, UserError> {
    let full_name = named_decision.full_name();
    if let Some(given_answer) = named_decision.given_answer() {
        return Err(UserError::usage(format!("{full_name} is already answered with `{}`", given_answer.choice))
            .with_reason("The run has not used the answer yet.")
            .with_step(format!("change it: `tribunal decisions {full_name} --change ANSWER`"))
            .with_step(format!("or apply it: `tribunal resume {}`", named_decision.run_id)));
    }
    let store = prepare_answer(context, project, named_decision, &typed_answer)?;
    let NamedDecision { run_id, decision, asking_run } = named_decision;
    // A loop has no process that would read the request later, so its answer takes effect here.
    if decision.about == DecisionTopic::Workflow(WorkflowTopic::Session(SessionTopic::Loop)) {
        let note = context.secret_masker().mask(&typed_answer.note).into_owned();
        let answer = DecisionAnswer { note, ..typed_answer };
        let loop_answer = LoopAnswer { decision: decision.id.clone(), answer };
        // The store is closed first, since the answer opens it again for writing.
        drop(store);
        return Ok(AnswerOutcome::LoopAnswered(session_loops::answer_loop(project, run_id, loop_answer)?));
    }
    // The run reads the request at its next step, or when it is resumed; this command does not start anything.
    let request = answer_request(context, decision, typed_answer);
    user_requests::send_request(project, &store, &asking_run.run_view, &request, Vec::new())?;
    Ok(AnswerOutcome::Recorded)
}

/// Replaces an answer that the run has not used yet.
pub(super) fn change_answer(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
    typed_answer: DecisionAnswer,
) -> Result<(), UserError> {
    let NamedDecision { run_id, decision, asking_run } = named_decision;
    let full_name = named_decision.full_name();
    if named_decision.given_answer().is_none() {
        return Err(UserError::usage(format!("{full_name} has no answer yet that could be changed"))
            .with_step(format!("answer it: `tribunal decisions {full_name} {}`", typed_answer.choice)));
    }
    let store = prepare_answer(context, project, named_decision, &typed_answer)?;
    let own_answers = || asking_run.given_answers.iter().filter(|given| given.decision_id == decision.id);
    let replaced_ids = own_answers().filter_map(|given| match given.place {
        AnswerPlace::Inbox(inbox_id) => Some(inbox_id),
        AnswerPlace::File => None,
    });
    let request = answer_request(context, decision, typed_answer.clone());
    user_requests::send_request(project, &store, &asking_run.run_view, &request, replaced_ids.collect())?;
    // The inbox is read before the files, so the new answer counts even if the file still has the old one.
    if own_answers().any(|given| matches!(given.place, AnswerPlace::File))
        && let Err(cause) = Runner::clear_file_answer(project, &asking_run.run_view, &decision.id)
    {
        writeln!(stderr(), "warning: could not remove the earlier answer from the file of {full_name}: {cause}")?;
    }
    // A process that works on the run may have read the old answer at the same moment.
    let run_view = store.read_view(run_id)?;
    let known_decision = run_view.decisions.iter().find(|known_decision| known_decision.id == decision.id);
    match known_decision.and_then(|known_decision| known_decision.answer.as_ref()) {
        Some(used_answer) if used_answer.choice != typed_answer.choice => {
            Err(used_answer_error(named_decision, used_answer))
        }
        _ => Ok(()),
    }
}

/// Checks everything that can be wrong with an answer, then opens the journal for writing.
fn prepare_answer(
    context: &CommandContext,
    project: &Project,
    named_decision: &NamedDecision<'_>,
    typed_answer: &DecisionAnswer,
) -> Result<Store, UserError> {
    check_choice(named_decision.decision, &typed_answer.choice)?;
    say::check_brief_text(&typed_answer.note)?;
    let store = Store::open(&project.home_dir())?;
    // A session must not answer questions about its own work; that is up to the user.
    agent_session::refuse_reviewed_session(&store, &named_decision.run_id, context)?;
    Ok(store)
}

/// Makes the request that tells the run the answer, without secrets.
fn answer_request(context: &CommandContext, decision: &Decision, typed_answer: DecisionAnswer) -> UserRequest {
    let note = context.secret_masker().mask(&typed_answer.note).into_owned();
    UserRequest::Answer { decision: decision.id.clone(), answer: DecisionAnswer { choice: typed_answer.choice, note } }
}

fn check_choice(decision: &Decision, choice: &str) -> Result<(), UserError> {
    if decision.offers_choice(choice) {
        return Ok(());
    }
    let choice_keys: Vec<&str> = decision.choices.iter().map(|known_choice| known_choice.key.as_str()).collect();
    let mut user_error =
        UserError::usage(format!("`{}` is not a valid answer to {}", escape_line(choice), decision.id))
            .with_reason(format!("Valid answers: {}.", choice_keys.join(", ")));
    if let Some(suggestion) = nearest_name(choice, &choice_keys) {
        user_error = user_error.with_step(format!("did you mean `{suggestion}`?"));
    }
    Err(user_error)
}

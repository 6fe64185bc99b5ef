//! `tribunal say RUN TEXT`: adds a remark to the agents' next briefs.

use std::io::{Write, stdout};

use serde_json::json;
use tribunal_bmad::board::Board;
use tribunal_engine::{ids::RunId, user_remark::UserRemark};
use tribunal_report::{escape_line, tables::is_driven_by_session};
use tribunal_runner::{Project, Runner};
use tribunal_store::Store;
use tribunal_workflows::{
    runs::{user_request::UserRequest, view::RunPhase},
    sprint::{
        requests::{SprintCommand, names_story},
        view::SprintView,
    },
};

use crate::{
    bmad::BmadProject,
    context::CommandContext,
    messages::{json_documents, user_errors::UserError},
    runs::user_requests,
};

/// A brief has little room beside the subject; a longer text belongs into a file of the project.
const MAX_REMARK_CHARS: usize = 2000;

#[derive(Debug, clap::Args)]
pub(crate) struct SayArguments {
    /// Run whose agents get the message
    run: String,
    /// Message for the agents
    #[arg(required = true)]
    text: Vec<String>,
}

pub(crate) fn run(arguments: &SayArguments, context: &CommandContext) -> Result<u8, UserError> {
    let project = context.current_project();
    let (store, run_id) = context.find_requested_run(&project, Some(&arguments.run))?;
    let remark_text = arguments.text.join(" ").trim().to_string();
    check_remark(&remark_text)?;
    // A session must not influence the agents that judge its own work.
    crate::clients::agent_session::refuse_reviewed_session(&store, &run_id, context)?;
    let run_view = store.read_view(&run_id)?;
    if is_driven_by_session(&run_view) {
        return Err(UserError::usage(format!("{run_id} is a loop, which has no agents"))
            .with_step("type the message in its session"));
    }
    if let RunPhase::Finished(_) = run_view.phase {
        return Err(ended_run_error(&run_id, "No agent would read the message."));
    }
    if let Some(sprint_view) = run_view.as_sprint() {
        check_request(&project, sprint_view, &remark_text)?;
    }
    drop(store);
    // Secrets are masked before anything is stored.
    let remark_text = context.secret_masker().mask(&remark_text).into_owned();
    // The request waits in the inbox of the run, whether a process works on it now or later.
    let store = Store::open(&project.home_dir())?;
    let request = UserRequest::Say(UserRemark::new(remark_text.clone()));
    user_requests::send_request(&project, &store, &run_view, &request, Vec::new())?;
    // The run may have ended since it was looked at, and an ended run reads nothing.
    let is_unread = !store.pending_requests(&run_id)?.is_empty();
    if is_unread && store.last_entry_of(&run_id, &["run_finished"])?.is_some() {
        return Err(ended_run_error(&run_id, "It ended before it could read the message."));
    }
    drop(store);
    let run_is_live = Runner::is_live(&project, &run_id);
    let command = run_view.as_sprint().and_then(|_| SprintCommand::read_remark(&remark_text));
    if context.wants_json {
        // The masked text is echoed, so that the user sees what agents will really get.
        json_documents::print_document(
            &json!({ "schema": "tribunal.say/1", "run": run_id, "said": remark_text, "running": run_is_live, "request": command }),
        )?;
    } else if let Some(command) = command {
        context.print_answer(&escape_line(&format!("sent to run {run_id} as a request: {}", command.describe())))?;
    } else if run_is_live && run_view.as_sprint().is_some() {
        context.print_answer(&escape_line(&format!("sent to run {run_id}; agents see it from its next story on")))?;
    } else if run_is_live {
        writeln!(
            stdout(),
            "sent to run {}; its agents see it from their next prompt on",
            escape_line(run_id.as_str())
        )?;
    } else {
        let resume_command = format!("{} resume {run_id}", context.answer_screen.program_name);
        let kept_message = format!("saved for run {run_id}; its agents see it after `{resume_command}`");
        context.print_answer(&escape_line(&kept_message))?;
    }
    Ok(0)
}

/// Refuses a request that a sprint could not carry out.
fn check_request(project: &Project, sprint_view: &SprintView, remark_text: &str) -> Result<(), UserError> {
    let Some(SprintCommand::Skip { story }) = SprintCommand::read_remark(remark_text) else { return Ok(()) };
    if let Some(current) = sprint_view.current.as_ref().filter(|current| names_story(&story, current)) {
        return Err(UserError::usage(format!("{current} is being worked on, so it cannot be skipped"))
            .with_step("stop its run: `tribunal status` names it, `tribunal stop RUN` stops it"));
    }
    let bmad = BmadProject::read_project(project);
    let is_known = |board: &Board| board.stories().any(|(_, entry)| names_story(&story, &entry.raw_key));
    match &bmad.board {
        Some(board) if !is_known(board) => Err(UserError::usage(format!("no story `{story}` on {}", board.path))
            .with_step("list the stories: `tribunal status`")),
        _ => Ok(()),
    }
}

fn ended_run_error(run_id: &RunId, reason: &str) -> UserError {
    UserError::usage(format!("run {run_id} has ended, so the message cannot be delivered"))
        .with_reason(reason)
        .with_step("start a new run: `tribunal review FILE`")
}

fn check_remark(remark_text: &str) -> Result<(), UserError> {
    if remark_text.is_empty() {
        return Err(UserError::usage("the message is empty").with_step("write one: `tribunal say RUN \"MESSAGE\"`"));
    }
    check_brief_text(remark_text)
}

/// Checks a text that goes into a brief. Notes of answers are checked, too, since they reach agents in the same way.
pub(super) fn check_brief_text(brief_text: &str) -> Result<(), UserError> {
    if brief_text.contains('\0') {
        return Err(UserError::usage("the text contains a NUL character"));
    }
    if brief_text.chars().count() > MAX_REMARK_CHARS {
        return Err(UserError::usage(format!("the text is longer than {MAX_REMARK_CHARS} characters"))
            .with_reason("It is added to every further prompt, next to the subject.")
            .with_step("put it into a file of the project and refer to that file"));
    }
    Ok(())
}

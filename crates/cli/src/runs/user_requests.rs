//! Sends what the user requests to a run, and says if the run does not take it.

use tribunal_runner::{
    Project,
    engine::request_sender::{RequestDelivery, RequestSender},
};
use tribunal_store::Store;
use tribunal_supervise::probe_sandbox;
use tribunal_workflows::runs::{user_request::UserRequest, view::RunView};

use crate::{
    context::base_directory,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
};

/// Sends a request to a run, in place of earlier ones with these numbers.
pub(crate) fn send_request(
    project: &Project,
    store: &Store,
    run_view: &RunView,
    request: &UserRequest,
    replaced_ids: Vec<i64>,
) -> Result<(), UserError> {
    let home_dir = base_directory("HOME", "");
    let sender =
        RequestSender { project, store, run_view, sandbox_support: probe_sandbox(), home_dir: home_dir.as_deref() };
    let delivery = sender.send_request(request, replaced_ids)?;
    let run_name = run_view.run_id.as_ref().map(ToString::to_string).unwrap_or_default();
    let not_sent = |what: &str| UserError::new(EXIT_ENVIRONMENT, format!("run {run_name} {what}"));
    match delivery {
        RequestDelivery::Sent => Ok(()),
        RequestDelivery::NotTaken => Err(not_sent("has not taken this in time, so it does not count")
            .with_reason("Its agents have no sandbox, so the run has to see which command sends something.")
            .with_step("try again")),
        RequestDelivery::Refused => Err(not_sent("has not accepted this, so it does not count")
            .with_reason(
                "Its agents have no sandbox, so the run accepts only commands of the program that it runs in itself.",
            )
            .with_step("use that program, in a terminal of your own")),
        RequestDelivery::Interrupted => Err(not_sent("was interrupted and takes nothing until it is resumed")
            .with_reason("Its agents have no sandbox, so what comes after a crash cannot be told from what they sent.")
            .with_step(format!("resume it first: `tribunal resume {run_name}`"))),
    }
}

//! Sends a request of the user to a run. While agents without a sandbox work, they could put requests into the inbox as well, so
//! the run asks who sent them: this process holds the proof until the run has looked at the request.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use tribunal_engine::ids::RunId;
use tribunal_store::{RequestStatus, Store, StoreError};
use tribunal_supervise::{ProcessIdentity, SandboxSupport, SenderProof, can_verify_senders};
use tribunal_workflows::runs::{
    kinds::RunOrder,
    user_request::UserRequest,
    view::{RunPhase, RunView},
};

use crate::{
    Project, Runner,
    sandbox::{ProjectPlace, can_write_project},
    shared::user_words::request_digest,
};

/// How long a sender waits for the run.
const MAX_WAIT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestDelivery {
    /// It is in the inbox, and counts.
    Sent,
    /// The run has not looked at it in time, so it will not count.
    NotTaken,
    /// The run does not accept this process as the user.
    Refused,
    /// It was not sent: the run crashed while agents without a sandbox may have been at work, so after that no request counts.
    Interrupted,
}

/// Sends requests to one run.
#[derive(Debug)]
pub struct RequestSender<'a> {
    pub project: &'a Project,
    pub store: &'a Store,
    pub run_view: &'a RunView,
    /// What the kernel can enforce.
    pub sandbox_support: SandboxSupport,
    pub home_dir: Option<&'a Path>,
}

impl RequestSender<'_> {
    /// Sends a request, in place of earlier ones that the run has not read yet.
    pub fn send_request(&self, request: &UserRequest, replaced_ids: Vec<i64>) -> Result<RequestDelivery, StoreError> {
        let Some(run_id) = &self.run_view.run_id else { return Ok(RequestDelivery::Sent) };
        let is_watched = can_verify_senders() && self.has_unrestricted_agents();
        if is_watched && !self.is_worked_on(run_id) && matches!(self.run_view.phase, RunPhase::Running) {
            return Ok(RequestDelivery::Interrupted);
        }
        let sender = ProcessIdentity::current().to_string();
        // The proof comes first: the run may look at the request as soon as it is there.
        let digest = request_digest(run_id, request, &sender).unwrap_or_default();
        let _proof = SenderProof::from_digest(&digest);
        self.store.send_request(run_id, request, &sender, replaced_ids)?;
        if !is_watched {
            return Ok(RequestDelivery::Sent);
        }
        let sent_at = Instant::now();
        loop {
            // A run that has stopped meanwhile reads its inbox when it is resumed.
            let is_worked_on = self.is_worked_on(run_id);
            match self.store.request_status(run_id, &sender)? {
                RequestStatus::Accepted => return Ok(RequestDelivery::Sent),
                RequestStatus::Refused => return Ok(RequestDelivery::Refused),
                RequestStatus::Waiting if !is_worked_on => return Ok(RequestDelivery::Sent),
                RequestStatus::Waiting if sent_at.elapsed() > MAX_WAIT => return Ok(RequestDelivery::NotTaken),
                RequestStatus::Waiting => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Whether an agent of the run can write in the inbox itself.
    fn has_unrestricted_agents(&self) -> bool {
        let place = ProjectPlace { root: self.project.root(), home: self.home_dir };
        let settings = self.run_view.settings.as_ref();
        self.run_view.order.as_ref().is_some_and(RunOrder::works_in_place)
            || settings.is_some_and(|settings| can_write_project(&settings.sandbox, self.sandbox_support, &place))
    }

    /// Whether a process works on the run, or on the run that it is a part of.
    fn is_worked_on(&self, run_id: &RunId) -> bool {
        let root_id = self.run_view.parent.as_ref().map(|parent| &parent.root);
        [Some(run_id), root_id].into_iter().flatten().any(|run_id| Runner::is_live(self.project, run_id))
    }
}

//! A sample journal of a run over a code change, as far as landings are concerned.

use tribunal_engine::ids::{FindingId, Key};
use tribunal_workflows::{
    findings::{
        finding::{Evidence, Finding, FindingStatus, Severity, StatusTransition, TransitionCause},
        subject::{CodeChange, Subject},
    },
    review::{event::ReviewEvent, review_keys::ReviewKeys},
    runs::{plan::RunPlan, types::RunEvent},
};

use crate::samples;

/// The key of the fixer that makes the change with this index.
pub fn landing_key(landing_index: usize) -> Key {
    Key::for_fix_iteration(1, 1).fixer_key(landing_index as u32 + 1)
}

/// The events of a run that has landed one change for each list of findings and has fixed those findings; no event follows.
pub fn landed_change(landings: &[Vec<FindingId>]) -> Vec<RunEvent> {
    let code_change = CodeChange { range: "work tree".into(), ..CodeChange::default() };
    let RunPlan { settings, order } = samples::sample_plan()
        .with_change(|plan| plan.order.subject = Subject::Change(Box::new(code_change)))
        .into_run();
    let (version, build) = (order.workflow_version(), String::new());
    let mut events = vec![RunEvent::RunStarted { version, build, settings, order, parent: None, batch: None }];
    let raised_event = |finding_id: &FindingId| {
        RunEvent::from_workflow(ReviewEvent::FindingRaised { finding: sample_finding(*finding_id) })
    };
    events.extend(landings.iter().flatten().map(raised_event));
    for (landing_index, findings) in landings.iter().enumerate() {
        let (key, findings) = (landing_key(landing_index), findings.clone());
        events.push(RunEvent::from_workflow(ReviewEvent::PatchLanded { key, findings: findings.clone(), lines: 1 }));
        let transition = || StatusTransition::new(FindingStatus::Fixed, TransitionCause::Repaired, "landed");
        let repaired_event =
            |finding| RunEvent::from_workflow(ReviewEvent::FindingMoved { finding, transition: transition() });
        events.extend(findings.into_iter().map(repaired_event));
    }
    events
}

fn sample_finding(id: FindingId) -> Finding {
    Finding {
        id,
        severity: Severity::High,
        category: "test".into(),
        description: format!("what {id} is about"),
        evidence: Evidence::Quote { text: "x".into() },
        place: None,
        found: None,
        suggested_fix: String::new(),
        raisers: Vec::new(),
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: Vec::new(),
    }
}

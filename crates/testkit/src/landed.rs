//! A sample journal of a run over a code change, as far as landings are concerned.

use tribunal_core::{
    event::Event,
    finding::{Cause, Evidence, Finding, Severity, Status, Transition},
    ids::{FindingId, Key},
    subject::{Change, Subject},
};

use crate::samples;

/// The key of the fixer that makes the change with this index.
pub fn lander(number: usize) -> Key {
    Key::fix_iteration(1, 1).fixer(number as u32 + 1)
}

/// The events of a run that has landed one change for each list of findings, has fixed those findings, and has then stopped.
pub fn landed_change(landings: &[Vec<FindingId>]) -> Vec<Event> {
    let mut settings = samples::settings();
    settings.subject = Subject::Change(Box::new(Change { range: "work tree".into(), ..Change::default() }));
    let (workflow, build) = ("review".to_string(), String::new());
    let mut events = vec![Event::RunStarted { workflow, version: 1, build, settings }];
    let all = landings.iter().flatten();
    events.extend(all.map(|id| Event::FindingRaised { finding: finding(*id) }));
    for (number, findings) in landings.iter().enumerate() {
        let (key, findings) = (lander(number), findings.clone());
        events.push(Event::PatchLanded { key, findings: findings.clone(), lines: 1 });
        let transition = || Transition::new(Status::Fixed, Cause::Repaired, "landed");
        let repaired = |finding| Event::FindingMoved { finding, transition: transition() };
        events.extend(findings.into_iter().map(repaired));
    }
    events
}

fn finding(id: FindingId) -> Finding {
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
        status: Status::Open,
        maybe_same_as: None,
        history: Vec::new(),
    }
}

//! Recorded journals of a review, a loop, a story and a sprint: what the workflows request and note today must be what they
//! requested and noted when the journals were recorded, byte for byte. `record_journals` in the tests of the binary records them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::BTreeMap, fs, path::Path};

use tribunal_engine::{host::ParkedRun, reason::RunEnding};
use tribunal_workflows::{
    runs::{
        types::{EntryDraft, JournalEntry, ReplayHistory, Replayer, RunEvent, RunSummary, WorkflowPoll},
        view::RunView,
    },
    workflows::start_workflow,
};

#[test]
fn recorded_reviews_replay_unchanged() {
    replay_recording("demo", 1);
}

#[test]
fn recorded_loops_replay_unchanged() {
    replay_recording("loop", 2);
}

#[test]
fn recorded_stories_replay_unchanged() {
    replay_recording("story", 2);
}

#[test]
fn recorded_sprints_replay_unchanged() {
    replay_recording("sprint", 5);
}

fn replay_recording(name: &str, run_count: usize) {
    let file_path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{name}.jsonl"));
    let mut runs: BTreeMap<String, Vec<JournalEntry>> = BTreeMap::new();
    for line in fs::read_to_string(file_path).unwrap().lines() {
        let journal_entry: JournalEntry = serde_json::from_str(line).unwrap();
        assert_eq!(
            serde_json::to_value(&journal_entry).unwrap(),
            serde_json::from_str::<serde_json::Value>(line).unwrap()
        );
        runs.entry(journal_entry.run.to_string()).or_default().push(journal_entry);
    }
    assert_eq!(runs.len(), run_count);
    for entries in runs.values() {
        let is_boundary = |entry: &JournalEntry| matches!(entry.event, RunEvent::Boundary { .. });
        let mut segment_starts: Vec<usize> = vec![0];
        segment_starts
            .extend(entries.iter().enumerate().filter(|(_, entry)| is_boundary(entry)).map(|(index, _)| index + 1));
        let segment_ends = segment_starts.iter().skip(1).copied().chain([entries.len()]);
        for (start, end) in segment_starts.iter().zip(segment_ends) {
            replay_segment(&entries[..*start], &entries[*start..end]);
        }
    }
}

/// Runs one segment from the state that was recorded before it, answering with the recorded replies.
fn replay_segment(earlier: &[JournalEntry], segment: &[JournalEntry]) {
    let with_start = if earlier.is_empty() { &segment[..1] } else { earlier };
    let plan = RunView::from_entries(with_start).run_plan().unwrap();
    let history = ReplayHistory::from_entries(with_start.iter().cloned());
    let recorded_state = history.state.clone();
    let replayer = Replayer::new(plan.settings, history);
    let mut workflow = start_workflow(&replayer, &plan.order, recorded_state).unwrap();
    let mut noted: Vec<EntryDraft> = Vec::new();
    let mut replies = segment.iter().filter(|entry| matches!(entry.event, RunEvent::EffectFinished { .. }));
    let ending = loop {
        match replayer.poll_workflow(&mut workflow) {
            WorkflowPoll::Diverged(divergence) => panic!("{}: {divergence}", segment[0].run),
            WorkflowPoll::Waiting { drafts, .. } => {
                noted.extend(drafts);
                let Some(JournalEntry { at, event: RunEvent::EffectFinished { key, reply, .. }, .. }) = replies.next()
                else {
                    break None;
                };
                replayer.deliver_reply(key, *at, reply.clone()).unwrap();
            }
            WorkflowPoll::Finished { drafts, value } => {
                noted.extend(drafts);
                break Some(value);
            }
        }
    };
    assert_eq!(replies.next(), None, "a reply was not awaited");
    // What the host notes by itself is no work of the workflow.
    let is_of_workflow = |entry: &&JournalEntry| {
        !matches!(
            entry.event,
            RunEvent::RunStarted { .. }
                | RunEvent::EffectFinished { .. }
                | RunEvent::ChildStarted { .. }
                | RunEvent::ChildReturned(_)
                | RunEvent::ChildUsage { .. }
                | RunEvent::RunFinished(_)
        )
    };
    let to_line = |id: &str, event: &RunEvent| format!("{id} {}", serde_json::to_string(event).unwrap());
    let recorded: Vec<String> =
        segment.iter().filter(is_of_workflow).map(|entry| to_line(&entry.id, &entry.event)).collect();
    let noted: Vec<String> = noted.iter().map(|draft| to_line(&draft.id, &draft.event)).collect();
    for (noted_line, recorded_line) in noted.iter().zip(&recorded) {
        assert_eq!(noted_line, recorded_line, "{}", segment[0].run);
    }
    assert_eq!(noted.len(), recorded.len(), "{:?} / {:?}", noted.last(), recorded.last());
    let recorded_ending = match &segment.last().unwrap().event {
        RunEvent::RunFinished(RunSummary { reason, detail, left, .. }) => {
            let ending = RunEnding::new(*reason, detail.clone());
            Some(Ok(RunEnding { left: left.clone(), ..ending }))
        }
        _ => None,
    };
    assert_eq!(ending, recorded_ending as Option<Result<RunEnding, ParkedRun>>, "{}", segment[0].run);
}

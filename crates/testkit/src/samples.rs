//! Small sample values that many tests need.

use tribunal_core::{
    brief::{AgentReply, Brief, Claim, Content, Holds, Raised, Ruling, Said},
    confidence::{Confidence, Reviewers, Signal, Signals, Validation, calculate},
    effect::{AskOutcome, EffectKind, FailedTask, FreezeOutcome, FrozenSubject, LandOutcome, Landed, Reply},
    fault::{Fault, FaultKind},
    files::{FrozenFile, Hunk, LandedFile, Patch, Refusal},
    finding::{Evidence, Severity},
    ids::{FindingId, Hash},
    level::Tier,
    limits::Usage,
    settings::{AgentSpec, DriverSpec, Settings, TaskSettings},
    subject::Subject,
};

/// A text with one line for each flaw: `flaw 1`, `flaw 2`, … each under a heading of its own.
pub fn flawed_text(flaws: usize) -> String {
    let mut text = String::from("# Plan\n");
    for number in 1..=flaws {
        text.push_str(&format!("\n## Part {number}\n\nflaw {number}\n"));
    }
    text
}

pub fn settings() -> Settings {
    Settings {
        tasks: TaskSettings { required_issues: 0, ..TaskSettings::default() },
        agents: vec![AgentSpec::new("sample", DriverSpec::Command { argv: vec!["sample".into()] })],
        reviews: "reviews".into(),
        ..Settings::new(Subject::at("plan.md", None))
    }
}

/// A confidence of 83: the checks passed, and two of three reviewers are content.
pub fn confidence() -> Confidence {
    let signals = Signals {
        validation: Signal::Consulted(Validation::Pass),
        reviewers: Signal::Consulted(Reviewers { content: 2, answered: 3 }),
        ..Signals::default()
    };
    calculate(&signals, Tier::default()).unwrap_or_else(|impossible| panic!("{impossible}"))
}

/// A claim about the line `flaw N`.
pub fn raised(number: usize, severity: Severity) -> Raised {
    Raised {
        severity,
        category: "sample".into(),
        description: format!("flaw {number} is a flaw"),
        evidence: Evidence::Quote { text: format!("flaw {number}") },
        file: None,
        line: None,
        suggested_fix: String::new(),
    }
}

pub fn frozen(text: &str) -> Reply {
    Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
        hash: Hash::of(text.as_bytes()),
        text: text.to_string(),
        files: Vec::new(),
        remarks: Vec::new(),
    }))
}

fn agent(content: Content, patch: Option<Patch>) -> Reply {
    Reply::Ask(AskOutcome::Answered(AgentReply {
        content,
        remarks: Vec::new(),
        usage: Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() },
        patch,
        minutes: Default::default(),
        prompt: Hash::new("prompt"),
        output: Hash::new("output"),
        repeats: None,
        strayed: Vec::new(),
        session: None,
    }))
}

pub fn findings(raised: Vec<Raised>) -> Reply {
    agent(Content::Findings { raised }, None)
}

/// The answer of a challenger that upholds everything it was given.
pub fn upheld(brief: &Brief) -> Reply {
    rulings(brief.disputed.iter().map(|disputed| (disputed.id, Holds::Valid)).collect())
}

/// The answer of a challenger; it refutes a finding by quoting the title of the text.
pub fn rulings(said: Vec<(FindingId, Holds)>) -> Reply {
    let rulings = said.into_iter().map(|(id, holds)| Ruling {
        id,
        holds,
        note: format!("about {id}"),
        counter: if holds == Holds::Invalid { "# Plan".into() } else { String::new() },
    });
    agent(Content::Rulings { rulings: rulings.collect() }, None)
}

pub fn unreadable() -> Reply {
    agent(Content::Unreadable { message: "the answer is empty".into() }, None)
}

/// The answer of a fixer, with a patch unless `patched` is false.
pub fn fixes(claims: Vec<(FindingId, Said)>, patched: bool) -> Reply {
    let claims = claims.into_iter().map(|(id, said)| Claim {
        id,
        said,
        note: format!("about {id}"),
        verification: String::new(),
        files_modified: Vec::new(),
        memory_saved: false,
    });
    let patch = Patch { hash: Hash::new("patch"), files: vec!["plan.md".into()], diff: Hash::new("diff") };
    agent(Content::Fixes { claims: claims.collect() }, patched.then_some(patch))
}

pub fn landed(text: &str, hunks: Vec<Hunk>) -> Reply {
    let (text, hash) = (text.to_string(), Hash::of(text.as_bytes()));
    Reply::Land(LandOutcome::Landed(Landed { hunks, text, hash, files: Vec::new() }))
}

/// The reply to a look at a changed text, with one hunk for each line that differs.
pub fn taken_in(before: &[FrozenFile], now: &str) -> Reply {
    let old: Vec<&str> = before.iter().flat_map(|file| file.text.lines()).collect();
    let new: Vec<&str> = now.lines().collect();
    let differs = |at: &usize| old.get(*at) != new.get(*at);
    let hunk = |at: usize| {
        let (old_len, new_len) = (u32::from(at < old.len()), u32::from(at < new.len()));
        Hunk { old_start: at as u32 + 1, old_len, new_len }
    };
    let hunks = (0..old.len().max(new.len())).filter(differs).map(hunk).collect();
    let path = before.first().map_or_else(String::new, |file| file.path.clone());
    let files = vec![LandedFile { path, hunks, text: now.to_string() }];
    let (hunks, text, hash) = (Vec::new(), String::new(), Hash::of(now.as_bytes()));
    Reply::TakeIn(LandOutcome::Landed(Landed { hunks, text, hash, files }))
}

pub fn failed(kind: FaultKind) -> Reply {
    let fault = Fault::new(kind, "agent `sample` failed");
    Reply::Ask(AskOutcome::Failed(FailedTask {
        fault,
        usage: Usage::default(),
        output: None,
        prompt: None,
        strayed: Vec::new(),
    }))
}

/// The reply of an effect of this kind that failed. It panics for a kind that cannot fail.
pub fn failed_as(kind: EffectKind) -> Reply {
    let fault = Fault::new(FaultKind::World, "the disk is full");
    match Reply::failed(kind, fault) {
        Some(reply) => reply,
        None => panic!("{kind} cannot fail"),
    }
}

/// The refusal of a patch that conflicts with another change.
pub fn conflict(line: u32) -> Refusal {
    let (file, ours, theirs) = (String::new(), String::new(), String::new());
    Refusal::Conflict { line, file, ours, theirs }
}

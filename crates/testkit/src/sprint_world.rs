//! A world for sprints: a board in memory, stories that end as a script or the dice say, and a user who answers, skips and does stories
//! by hand. It panics if a story is begun whose needs are not met, or twice. A story that is asked for again after a kill says the same
//! again, and what the user sent stays in the inbox until it is recorded, as in the product.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use tribunal_engine::{
    child_outcome::FailedChild,
    effect::PostOutcome,
    fault::{Fault, FaultKind},
    ids::{Key, RunId},
    reason::{RunOutcome, RunReason},
    user_remark::UserRemark,
};
use tribunal_workflows::{
    development::notices::NotifyOutcome,
    runs::{
        effect::{Effect, Reply},
        kinds::RunOrder,
        types::{ChildOutcome, Decision, PendingEffect, Requests, RunChild},
        user_request::UserRequest,
    },
    sprint::facts::{OpenStory, PlannedStory, SprintFacts, SprintReading, StoryPlanning},
    story::{
        facts::{StoryName, StoryStage},
        order::{StoryFilePlan, StorySteps},
    },
    tasks::client::ModelSize,
};

use crate::{
    development_replies::{child_report, uncosted_usage},
    dice::Dice,
    samples,
    simulated_user::{answer_at_random, end_wait},
    trial::{EffectResult, SimulatedWorld},
};

/// How a story of a sprint ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoryEnd {
    Done,
    /// It has a question; after the answer it is done.
    Asks,
    /// It has a question, and the user skips it.
    Abandoned,
    /// Its environment fails once; then it is done.
    BreaksOnce,
    /// Files of the user are in its way once; then it is done.
    MeetsFilesOnce,
    /// Its run breaks off once; then it is done.
    CrashesOnce,
    /// The user stops its run; continued, it is done.
    StopsOnce,
    /// It cannot be planned.
    Unplanned,
    /// It is done, but its commit waits on another branch: the board does not move.
    LandsElsewhere,
}

/// What one session of a story uses.
pub const STORY_TOKENS: u64 = 100;

/// A board with its stories.
#[derive(Debug)]
pub struct SprintWorld {
    stories: Vec<BoardStory>,
    /// What the user sends at the borders between stories, in this order.
    pub remarks: Vec<&'static str>,
    dice: Option<Dice>,
    /// The stories in the order in which they were run for the first time.
    pub begun: Vec<String>,
    /// The stories that had a session.
    worked_on: BTreeSet<String>,
    /// The stories whose runs wait for the user.
    waiting: BTreeSet<String>,
    /// The tokens that each story has used in its whole life.
    used: BTreeMap<String, u64>,
    /// The replies by their requests.
    replies: BTreeMap<Key, ChildOutcome>,
    /// The stories whose runs have ended.
    ended: BTreeMap<String, ChildOutcome>,
    open_decision: Option<Decision>,
    /// What the user sent last.
    sent: Vec<UserRequest>,
    /// What the agents of each story were told by the user.
    pub said: BTreeMap<String, Vec<String>>,
}

/// A story on the board.
#[derive(Clone, Debug)]
pub struct BoardStory {
    pub key: String,
    pub depends_on: Option<Vec<String>>,
    pub end: StoryEnd,
    pub is_done: bool,
    /// The board's word while it is not done.
    pub word: &'static str,
}

impl BoardStory {
    pub fn new(key: &str, end: StoryEnd) -> BoardStory {
        BoardStory { key: key.into(), depends_on: None, end, is_done: false, word: "ready-for-dev" }
    }

    fn epic(&self) -> &str {
        self.key.split('-').next().unwrap_or_default()
    }

    /// `None` for a word that is no stage.
    fn stage(&self) -> Option<StoryStage> {
        match self.word {
            "ready-for-dev" => Some(StoryStage::ReadyForDev),
            "in-progress" => Some(StoryStage::InProgress),
            "review" => Some(StoryStage::Review),
            _ => None,
        }
    }

    fn is_under_way(&self) -> bool {
        matches!(self.stage(), Some(StoryStage::InProgress | StoryStage::Review))
    }
}

impl SprintWorld {
    pub fn new(stories: Vec<BoardStory>) -> SprintWorld {
        SprintWorld {
            stories,
            remarks: Vec::new(),
            dice: None,
            begun: Vec::new(),
            worked_on: BTreeSet::new(),
            waiting: BTreeSet::new(),
            used: BTreeMap::new(),
            replies: BTreeMap::new(),
            ended: BTreeMap::new(),
            open_decision: None,
            sent: Vec::new(),
            said: BTreeMap::new(),
        }
    }

    /// Makes a board with up to twelve stories, of which nothing is known: they may depend on each other, even in a circle.
    pub fn random(seed: u64) -> SprintWorld {
        const ENDS: [StoryEnd; 10] = [
            StoryEnd::Done,
            StoryEnd::Done,
            StoryEnd::Done,
            StoryEnd::Asks,
            StoryEnd::Abandoned,
            StoryEnd::BreaksOnce,
            StoryEnd::CrashesOnce,
            StoryEnd::StopsOnce,
            StoryEnd::Unplanned,
            StoryEnd::LandsElsewhere,
        ];
        const WORDS: [&str; 8] = [
            "ready-for-dev",
            "ready-for-dev",
            "ready-for-dev",
            "ready-for-dev",
            "ready-for-dev",
            "in-progress",
            "review",
            "blocked",
        ];
        let mut dice = Dice::new(seed);
        let keys: Vec<String> = (0..1 + dice.roll(12)).map(|number| format!("{}-{number}-s", 1 + number / 4)).collect();
        let mut stories = Vec::new();
        for (position, key) in keys.iter().enumerate() {
            let depends_on = dice.roll_percent(40).then(|| {
                let others = keys.iter().enumerate().filter(|(other, _)| *other != position);
                // Most stories depend on earlier ones.
                let needed = others.filter(|(other, _)| dice.roll_percent(if *other < position { 30 } else { 3 }));
                needed.map(|(_, other_key)| other_key.clone()).collect()
            });
            let (end, word) = (*dice.pick(&ENDS), *dice.pick(&WORDS));
            stories.push(BoardStory { depends_on, word, ..BoardStory::new(key, end) });
        }
        SprintWorld { dice: Some(dice), ..SprintWorld::new(stories) }
    }

    /// Has the user do a story without the sprint.
    pub fn finish_by_hand(&mut self, key: &str) {
        self.stories.iter_mut().filter(|story| story.key == key).for_each(|story| story.is_done = true);
    }

    pub fn is_done(&self, key: &str) -> bool {
        self.stories.iter().any(|story| story.key == key && story.is_done)
    }

    /// Whether a story may be called done: the board says so, or its run has verified it and its commit waits elsewhere.
    pub fn is_verified(&self, key: &str) -> bool {
        self.is_done(key) || self.ended.get(key).is_some_and(is_resolved)
    }

    /// Lists the stories that may not be called done.
    pub fn list_unverified(&self) -> Vec<&str> {
        self.stories.iter().map(|story| story.key.as_str()).filter(|key| !self.is_verified(key)).collect()
    }

    /// Counts the stories whose runs have verified them.
    pub fn count_verified_runs(&self) -> usize {
        self.ended.values().filter(|outcome| is_resolved(outcome)).count()
    }

    pub fn used_tokens(&self) -> u64 {
        self.used.values().sum()
    }

    fn read_board(&self, watched: &[String]) -> SprintFacts {
        let open: Vec<OpenStory> = self
            .stories
            .iter()
            .filter(|story| !story.is_done)
            .map(|story| OpenStory {
                key: story.key.clone(),
                epic: story.epic().to_string(),
                stage: story.stage(),
                word: story.word.into(),
                depends_on: story.depends_on.clone(),
                ..OpenStory::default()
            })
            .collect();
        let open_count = open.len() as u32;
        let done_count = self.stories.len() as u32 - open_count;
        let is_finished = |epic: &str| self.stories.iter().all(|story| story.is_done || story.epic() != epic);
        let epics: BTreeSet<&str> = self.stories.iter().map(BoardStory::epic).collect();
        let finished_epics = epics.into_iter().filter(|epic| is_finished(epic)).map(String::from).collect();
        let is_done = |key: &&String| self.stories.iter().any(|story| story.is_done && story.key == **key);
        let done = watched.iter().filter(is_done).cloned().collect();
        SprintFacts { open, open_count, done_count, done, finished_epics, ..SprintFacts::default() }
    }

    fn plan_story(&mut self, key: &str) -> StoryPlanning {
        if self.roll_fault() {
            return StoryPlanning::Failed { fault: Fault::new(FaultKind::World, "the plan is locked") };
        }
        if self.stories.iter().any(|story| story.key == key && story.end == StoryEnd::Unplanned) {
            return StoryPlanning::Refused { detail: "it has no file".into() };
        }
        StoryPlanning::Planned(Box::new(PlannedStory {
            name: StoryName::from_key(key),
            files: StoryFilePlan::default(),
            steps: StorySteps::default(),
            size: ModelSize::Medium,
        }))
    }

    /// Whether the environment fails right now.
    fn roll_fault(&mut self) -> bool {
        self.dice.as_mut().is_some_and(|dice| dice.roll_percent(3))
    }

    fn run_child(&mut self, effect_key: &Key, run_child: &RunChild) -> ChildOutcome {
        let RunOrder::Story(order) = &run_child.order else { panic!("only stories are children of a sprint") };
        let key = order.story.key.clone();
        self.said.insert(key.clone(), order.texts.said.clone());
        if let Some(outcome) = self.replies.get(effect_key).or_else(|| self.ended.get(&key)) {
            return outcome.clone();
        }
        let Some(position) = self.stories.iter().position(|story| story.key == key) else {
            panic!("{key} is not on the board");
        };
        self.assert_ready(position);
        if !self.begun.contains(&key) {
            self.begun.push(key.clone());
        }
        let outcome = self.work_on_story(position, run_child.share.tokens);
        self.waiting.remove(&key);
        match &outcome {
            ChildOutcome::Waiting(_) => {
                self.waiting.insert(key);
            }
            ChildOutcome::Ended(_) => {
                self.ended.insert(key, outcome.clone());
            }
            ChildOutcome::Failed(_) => {}
        }
        self.replies.insert(effect_key.clone(), outcome.clone());
        outcome
    }

    /// Has a session with a story, if the story may use anything.
    fn work_on_story(&mut self, position: usize, token_limit: u64) -> ChildOutcome {
        let story = &mut self.stories[position];
        let used = self.used.entry(story.key.clone()).or_default();
        let run = RunId::new(format!("story-{}-0000", story.key));
        if *used >= token_limit {
            return ChildOutcome::Waiting(child_report(run, RunReason::Tokens, *used));
        }
        *used += STORY_TOKENS;
        let is_first = self.worked_on.insert(story.key.clone());
        let report = |reason: RunReason| child_report(run.clone(), reason, *used);
        match story.end {
            StoryEnd::Asks | StoryEnd::Abandoned if is_first => ChildOutcome::Waiting(report(RunReason::Blocked)),
            StoryEnd::Abandoned => ChildOutcome::Ended(report(RunReason::Abandoned)),
            StoryEnd::BreaksOnce if is_first => ChildOutcome::Waiting(report(RunReason::Environment)),
            StoryEnd::MeetsFilesOnce if is_first => ChildOutcome::Waiting(report(RunReason::CheckoutNotReady)),
            StoryEnd::StopsOnce if is_first => ChildOutcome::Waiting(report(RunReason::Stopped)),
            StoryEnd::CrashesOnce if is_first => ChildOutcome::Failed(FailedChild {
                run: Some(run.clone()),
                fault: Fault::new(FaultKind::World, "the disk is gone"),
                used: uncosted_usage(*used),
            }),
            StoryEnd::LandsElsewhere => ChildOutcome::Ended(report(RunReason::GoalMet)),
            _ => {
                story.is_done = true;
                ChildOutcome::Ended(report(RunReason::GoalMet))
            }
        }
    }

    /// Panics if a story is begun before what it needs is done.
    fn assert_ready(&self, position: usize) {
        let story = &self.stories[position];
        assert!(!story.is_done, "{} is done already", story.key);
        assert!(story.stage().is_some(), "{} is {}", story.key, story.word);
        let needed: Vec<&BoardStory> = match &story.depends_on {
            Some(keys) => self.stories.iter().filter(|other| keys.contains(&other.key)).collect(),
            None if story.is_under_way() => Vec::new(),
            None => self.stories[..position].iter().filter(|other| other.epic() == story.epic()).collect(),
        };
        for other in needed {
            assert!(other.is_done, "{} is begun, but {} is not done", story.key, other.key);
        }
    }

    /// What is in the inbox: what the user sends now, and what was sent before and is not recorded.
    fn take_requests(&mut self, is_asked_again: bool) -> Vec<UserRequest> {
        let mut requests = if is_asked_again { mem::take(&mut self.sent) } else { Vec::new() };
        self.work_by_hand();
        requests.extend(self.new_requests());
        self.sent.clone_from(&requests);
        requests
    }

    /// The user does a story by hand, now and then.
    fn work_by_hand(&mut self) {
        let Some(dice) = &mut self.dice else { return };
        for story in self.stories.iter_mut().filter(|story| !story.is_done) {
            story.is_done = dice.roll_percent(3);
        }
    }

    fn new_requests(&mut self) -> Vec<UserRequest> {
        let mut requests = Vec::new();
        if !self.remarks.is_empty() {
            requests.push(UserRequest::Say(UserRemark::new(self.remarks.remove(0))));
        }
        let Some(dice) = &mut self.dice else { return requests };
        requests.extend(answer_at_random(&mut self.open_decision, dice));
        for story in &self.stories {
            if !story.is_done && self.waiting.contains(&story.key) && dice.roll_percent(40) {
                requests.push(UserRequest::ContinueChild { child: format!("story-{}", story.key) });
            }
        }
        if dice.roll_percent(12) {
            let named_story = self.stories[dice.roll(self.stories.len())].key.trim_end_matches("-s");
            requests.push(UserRequest::Say(UserRemark::new(match dice.roll(8) {
                0..=2 => format!("skip {named_story}"),
                3 => "stop after this story".to_string(),
                4..=5 => format!("tier {} from now on", dice.roll(5)),
                _ => "keep functions short".to_string(),
            })));
        }
        requests
    }
}

fn is_resolved(outcome: &ChildOutcome) -> bool {
    matches!(outcome, ChildOutcome::Ended(report) if report.outcome == Some(RunOutcome::Resolved))
}

impl SimulatedWorld for SprintWorld {
    fn say_meanwhile(&mut self) -> Vec<UserRequest> {
        let speaks = self.dice.as_mut().is_some_and(|dice| dice.roll_percent(20));
        if speaks { self.new_requests() } else { Vec::new() }
    }

    fn perform(&mut self, ask: &PendingEffect) -> EffectResult {
        let reply = match &ask.effect {
            Effect::ReadSprint(request) => Reply::ReadSprint(match self.roll_fault() {
                true => Fault::new(FaultKind::World, "the board is locked").into(),
                false => SprintReading::Read(Box::new(self.read_board(&request.watched))),
            }),
            Effect::PlanStory(plan_story) => Reply::PlanStory(self.plan_story(&plan_story.story)),
            Effect::RunChild(run_child) => Reply::RunChild(self.run_child(&ask.effect_key, run_child)),
            Effect::Notify(_) => Reply::Notify(NotifyOutcome::Notified),
            Effect::Post(post) => {
                self.open_decision = Some(post.decision.clone());
                Reply::Post(PostOutcome::Posted)
            }
            Effect::Inbox(_) => Reply::Inbox(Requests { requests: self.take_requests(ask.resumed) }),
            Effect::Wait(wait) => return end_wait(wait, self.take_requests(ask.resumed), ask.resumed),
            other => samples::failed_effect_reply(other.kind()),
        };
        EffectResult::Reply(reply)
    }
}

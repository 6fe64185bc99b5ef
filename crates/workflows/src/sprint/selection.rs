//! Which story of a sprint comes next, and why others do not.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use tribunal_json::{Deserialize, Serialize, schemars};

use crate::{
    sprint::{
        facts::{OpenStory, SprintFacts, TwinLines},
        requests::names_story,
        scope::SprintScope,
        standing::StoryStanding,
    },
    story::{facts::StoryStage, order::StoryGoal},
};
use tribunal_engine::ids::RunId;

/// What is known about the stories besides the board.
#[derive(Clone, Copy, Debug)]
pub struct SprintProgress<'a> {
    /// The stories that were begun and are not done, by their keys.
    pub standings: &'a BTreeMap<String, StoryStanding>,
    /// What the user wants to skip, as typed.
    pub skipped: &'a [String],
    /// How many stories were begun.
    pub begun: u32,
    /// How far stories are taken.
    pub goal: StoryGoal,
}

/// What a sprint does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStory {
    Take {
        story: OpenStory,
        reason: String,
    },
    /// Nothing can be begun.
    Nothing {
        left_out: Vec<LeftOut>,
    },
}

/// An open story that is not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftOut {
    pub story: String,
    pub reason: LeftOutReason,
}

/// Why a story is not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "because", rename_all = "snake_case")]
pub enum LeftOutReason {
    /// It depends on a story that is not done.
    Needs { story: String },
    /// It says that it depends on something that is not on the board.
    UnknownNeed { name: String },
    /// It depends on itself, directly or through others.
    Circle { story: String },
    /// The board has it in a state in which nothing is done about it.
    State { word: String },
    /// The user skipped it.
    Skipped,
    /// The sprint was asked for a smaller number of stories.
    MaxStories,
    /// It cannot be started as it is.
    Refused { detail: String },
    /// Its key stands on two lines of the board, so that its state could not be changed.
    TwiceOnBoard {
        #[serde(flatten)]
        lines: TwinLines,
    },
    /// Another run works on it, or waits with it for the user.
    Claimed { claimant: RunId },
}

impl LeftOut {
    pub fn describe(&self) -> String {
        let LeftOut { story, reason } = self;
        match reason {
            LeftOutReason::Needs { story: needed } => format!("{story} depends on {needed}, which is not done"),
            LeftOutReason::UnknownNeed { name } => {
                format!("{story} says that it depends on `{name}`, which is not on the board")
            }
            LeftOutReason::Circle { story: needed } if needed == story => {
                format!("{story} depends on itself, so it cannot be begun")
            }
            LeftOutReason::Circle { story: needed } => {
                format!("{story} depends on {needed}, which depends on {story}: neither can be begun")
            }
            LeftOutReason::State { word } => format!("{story} is `{word}` on the board"),
            LeftOutReason::Skipped => format!("{story} was skipped"),
            LeftOutReason::MaxStories => format!("{story} is left for later: --max-stories was reached"),
            LeftOutReason::Refused { detail } => format!("{story} cannot be started: {detail}"),
            LeftOutReason::TwiceOnBoard { lines: TwinLines { first_line, second_line } } => {
                format!("{story}: its key stands twice on the board, lines {first_line} and {second_line}")
            }
            LeftOutReason::Claimed { claimant } => format!("{story} is worked on by run {claimant}"),
        }
    }
}

/// Chooses the next story: those in progress and in review first, then in the order of the board. A story comes after those that it says
/// it depends on; one that says nothing comes after the earlier stories of its epic.
pub fn choose_next(facts: &SprintFacts, scope: &SprintScope, progress: SprintProgress<'_>) -> NextStory {
    let mut left_out = Vec::new();
    for story in list_candidates(facts, scope) {
        // What was begun waits for the user, or was ended by the user.
        if progress.standings.contains_key(&story.key) {
            continue;
        }
        match find_obstacle(facts, scope, progress, story) {
            None => {
                return NextStory::Take {
                    story: story.clone(),
                    reason: describe_choice(facts, scope, progress, story),
                };
            }
            Some(reason) => left_out.push(LeftOut { story: story.key.clone(), reason }),
        }
    }
    NextStory::Nothing { left_out }
}

/// Lists all stories that were not begun and cannot be begun now, with the reasons.
pub fn list_left_out(facts: &SprintFacts, scope: &SprintScope, progress: SprintProgress<'_>) -> Vec<LeftOut> {
    let unbegun =
        list_candidates(facts, scope).into_iter().filter(|story| !progress.standings.contains_key(&story.key));
    let left_out = unbegun.filter_map(|story| {
        let reason = find_obstacle(facts, scope, progress, story)?;
        Some(LeftOut { story: story.key.clone(), reason })
    });
    left_out.collect()
}

/// Plans a whole sprint as if every story went well: the stories in their order with the reasons, and what is left out. `hindered` has the
/// stories that cannot be started, with the reasons. Retrospectives are not among it.
pub fn plan_sprint(
    facts: &SprintFacts,
    scope: &SprintScope,
    hindered: &BTreeMap<String, LeftOutReason>,
) -> SprintForecast {
    let standings = hindered.keys().map(|key| (key.clone(), StoryStanding::Refused)).collect();
    let mut left_facts = facts.clone();
    let mut stories: Vec<ForecastStory> = Vec::new();
    loop {
        let begun = stories.len() as u32;
        let progress = SprintProgress { standings: &standings, skipped: &[], begun, goal: StoryGoal::Done };
        match choose_next(&left_facts, scope, progress) {
            NextStory::Take { story, reason } => {
                left_facts.open.retain(|open| open.key != story.key);
                stories.push(ForecastStory { story: story.key, reason });
            }
            NextStory::Nothing { left_out } => {
                let is_meant = |key: &&String| list_candidates(facts, scope).iter().any(|story| story.key == **key);
                let hindered = hindered
                    .iter()
                    .filter(|(key, _)| is_meant(key))
                    .map(|(key, reason)| LeftOut { story: key.clone(), reason: reason.clone() });
                let left_out = hindered.chain(left_out).collect();
                return SprintForecast { stories, left_out, retrospectives: Vec::new() };
            }
        }
    }
}

/// What a sprint would do if every story went well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct SprintForecast {
    pub stories: Vec<ForecastStory>,
    pub left_out: Vec<LeftOut>,
    /// The retrospectives that would be held, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retrospectives: Vec<ForecastRetrospective>,
}

/// A story that would be developed, and why it comes when it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ForecastStory {
    pub story: String,
    pub reason: String,
}

/// A retrospective that would be held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ForecastRetrospective {
    pub epic: String,
    /// The story after which it would be held; `None` if it comes first, because an earlier sprint could not hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl ForecastRetrospective {
    pub fn describe(&self) -> String {
        let epic = &self.epic;
        match &self.after {
            Some(story) => format!("retrospective of epic {epic} after {story}"),
            None => format!("retrospective of epic {epic} at the beginning: an earlier sprint could not hold it"),
        }
    }
}

/// The stories that are meant, in the order in which they are tried.
fn list_candidates<'f>(facts: &'f SprintFacts, scope: &SprintScope) -> Vec<&'f OpenStory> {
    if !scope.stories.is_empty() {
        return scope.stories.iter().filter_map(|key| facts.find_story(key)).collect();
    }
    let mut candidates: Vec<&OpenStory> =
        facts.open.iter().filter(|story| scope.contains(&story.key, &story.epic)).collect();
    // The sort keeps the order of the board within both groups.
    candidates.sort_by_key(|story| !is_under_way(story));
    candidates
}

fn is_under_way(story: &OpenStory) -> bool {
    matches!(story.stage, Some(StoryStage::InProgress | StoryStage::Review))
}

fn find_obstacle(
    facts: &SprintFacts,
    scope: &SprintScope,
    progress: SprintProgress<'_>,
    story: &OpenStory,
) -> Option<LeftOutReason> {
    if progress.skipped.iter().any(|typed| names_story(typed, &story.key)) {
        return Some(LeftOutReason::Skipped);
    }
    if let Some(lines) = story.twin_lines {
        return Some(LeftOutReason::TwiceOnBoard { lines });
    }
    if story.stage.is_none_or(|stage| stage == StoryStage::Done) {
        return Some(LeftOutReason::State { word: story.word.clone() });
    }
    // Then nothing more is begun, so what it needs does not matter.
    if scope.max_stories.is_some_and(|most| progress.begun >= most) {
        return Some(LeftOutReason::MaxStories);
    }
    if let Some(name) = story.unknown_needs.first() {
        return Some(LeftOutReason::UnknownNeed { name: name.clone() });
    }
    if let Some(needed) = find_needed(facts, progress, story) {
        return Some(match is_circle(facts, progress, story) {
            true => LeftOutReason::Circle { story: needed },
            false => LeftOutReason::Needs { story: needed },
        });
    }
    None
}

/// Finds an open story that has to be done before this one.
fn find_needed(facts: &SprintFacts, progress: SprintProgress<'_>, story: &OpenStory) -> Option<String> {
    // A sprint that stops at the review has done what it should when a story waits for it.
    let is_enough = |other: &OpenStory| {
        progress.goal == StoryGoal::Review
            && other.stage == Some(StoryStage::Review)
            && progress.standings.get(&other.key) == Some(&StoryStanding::Done)
    };
    match &story.depends_on {
        Some(needed) => {
            let is_open = |key: &&String| facts.find_story(key).is_some_and(|other| !is_enough(other));
            needed.iter().find(is_open).cloned()
        }
        None if story.epic.is_empty() => None,
        None => {
            let earlier = facts.open.iter().take_while(|other| other.key != story.key);
            // Work that is under way was begun before this rule applied.
            let earlier = earlier.filter(|other| {
                other.epic == story.epic && !other.is_deferred && !is_enough(other) && !is_under_way(story)
            });
            earlier.map(|other| other.key.clone()).next()
        }
    }
}

/// Whether what a story needs leads back to it.
fn is_circle(facts: &SprintFacts, progress: SprintProgress<'_>, story: &OpenStory) -> bool {
    let mut current = story;
    for _ in 0..facts.open.len() {
        let needed = find_needed(facts, progress, current).and_then(|key| facts.find_story(&key));
        match needed {
            Some(needed) if needed.key == story.key => return true,
            Some(needed) => current = needed,
            None => return false,
        }
    }
    false
}

fn describe_choice(
    facts: &SprintFacts,
    scope: &SprintScope,
    progress: SprintProgress<'_>,
    story: &OpenStory,
) -> String {
    if !scope.stories.is_empty() {
        return String::from("you named it");
    }
    if is_under_way(story) {
        return format!("the board says {}", story.word);
    }
    match &story.depends_on {
        Some(needed) if !needed.is_empty() => format!("everything it depends on is done ({})", needed.join(", ")),
        _ if facts.open.first().is_some_and(|first| first.key == story.key) => match progress.begun {
            0 => String::from("it is the first open story of the board"),
            _ => String::from("it follows in the order of the board"),
        },
        _ => String::from("it is the next story that can be begun"),
    }
}

#[cfg(test)]
mod tests {
    use alloc::{string::ToString, vec};

    use super::*;

    fn story(key: &str, word: &str) -> OpenStory {
        let stage = match word {
            "backlog" => Some(StoryStage::Backlog),
            "ready-for-dev" => Some(StoryStage::ReadyForDev),
            "in-progress" => Some(StoryStage::InProgress),
            "review" => Some(StoryStage::Review),
            _ => None,
        };
        let epic = key.split('-').next().unwrap_or_default().to_string();
        let is_deferred = word == "deferred";
        OpenStory { key: key.into(), epic, stage, word: word.into(), is_deferred, ..OpenStory::default() }
    }

    fn facts(stories: Vec<OpenStory>) -> SprintFacts {
        SprintFacts { open_count: stories.len() as u32, open: stories, ..SprintFacts::default() }
    }

    fn next_of(facts: &SprintFacts, scope: &SprintScope, parked: &[&str]) -> String {
        let standings = parked.iter().map(|key| ((*key).to_string(), StoryStanding::Waiting)).collect();
        let progress = SprintProgress { standings: &standings, skipped: &[], begun: 0, goal: StoryGoal::Done };
        match choose_next(facts, scope, progress) {
            NextStory::Take { story, reason } => format!("{}: {reason}", story.key),
            NextStory::Nothing { left_out } => left_out.iter().map(LeftOut::describe).collect::<Vec<_>>().join("; "),
        }
    }

    #[test]
    fn work_that_is_under_way_comes_first_and_then_the_order_of_the_board() {
        let whole = SprintScope::default();
        let board = facts(vec![story("1-1-a", "ready-for-dev"), story("1-2-b", "backlog"), story("2-1-c", "review")]);
        assert_eq!(next_of(&board, &whole, &[]), "2-1-c: the board says review");
        assert_eq!(next_of(&board, &whole, &["2-1-c"]), "1-1-a: it is the first open story of the board");
    }

    #[test]
    fn a_parked_story_holds_its_epic_and_nothing_else() {
        let whole = SprintScope::default();
        let mut free = story("1-3-c", "backlog");
        free.depends_on = Some(vec!["1-0-done".into()]);
        let board = facts(vec![story("1-1-a", "backlog"), story("1-2-b", "backlog"), free, story("2-1-d", "backlog")]);
        assert_eq!(next_of(&board, &whole, &["1-1-a"]), "1-3-c: everything it depends on is done (1-0-done)");
        assert_eq!(next_of(&board, &whole, &["1-1-a", "1-3-c"]), "2-1-d: it is the next story that can be begun");
        assert_eq!(next_of(&board, &whole, &["1-1-a", "1-3-c", "2-1-d"]), "1-2-b depends on 1-1-a, which is not done");
    }

    #[test]
    fn circles_and_unknown_stories_are_named() {
        let whole = SprintScope::default();
        let mut board = facts(vec![story("1-1-a", "backlog"), story("2-1-b", "backlog"), story("3-1-c", "backlog")]);
        board.open[0].depends_on = Some(vec!["2-1-b".into()]);
        board.open[1].depends_on = Some(vec!["1-1-a".into()]);
        board.open[2].unknown_needs = vec!["9-9".into()];
        let mut own = facts(vec![story("4-1-d", "backlog")]);
        own.open[0].depends_on = Some(vec!["4-1-d".into()]);
        assert_eq!(next_of(&own, &whole, &[]), "4-1-d depends on itself, so it cannot be begun");
        let expected = "1-1-a depends on 2-1-b, which depends on 1-1-a: neither can be begun; \
                        2-1-b depends on 1-1-a, which depends on 2-1-b: neither can be begun; \
                        3-1-c says that it depends on `9-9`, which is not on the board";
        assert_eq!(next_of(&board, &whole, &[]), expected);
    }

    #[test]
    fn a_story_that_stands_twice_on_the_board_is_left_out_with_its_lines() {
        let mut board = facts(vec![story("1-1-a", "backlog"), story("2-1-b", "backlog")]);
        board.open[0].stage = None;
        board.open[0].twin_lines = Some(TwinLines { first_line: 4, second_line: 9 });
        let expected = "1-1-a: its key stands twice on the board, lines 4 and 9";
        assert_eq!(next_of(&board, &SprintScope::default(), &["2-1-b"]), expected);
    }

    #[test]
    fn what_another_run_works_on_is_left_out_of_a_plan_with_what_depends_on_it() {
        let board = facts(vec![story("1-1-a", "backlog"), story("1-2-b", "backlog"), story("2-1-c", "backlog")]);
        let claim = LeftOutReason::Claimed { claimant: RunId::new("story-1-1-a-x1y2") };
        let forecast = plan_sprint(&board, &SprintScope::default(), &BTreeMap::from([("1-1-a".to_string(), claim)]));
        let planned: Vec<&str> = forecast.stories.iter().map(|planned| planned.story.as_str()).collect();
        assert_eq!(planned, ["2-1-c"]);
        let left_out: Vec<String> = forecast.left_out.iter().map(LeftOut::describe).collect();
        let expected = ["1-1-a is worked on by run story-1-1-a-x1y2", "1-2-b depends on 1-1-a, which is not done"];
        assert_eq!(left_out, expected);
    }

    #[test]
    fn a_deferred_story_holds_only_what_names_it() {
        let whole = SprintScope::default();
        let mut board = facts(vec![story("1-1-a", "deferred"), story("1-2-b", "backlog"), story("1-3-c", "backlog")]);
        assert_eq!(next_of(&board, &whole, &[]), "1-2-b: it is the next story that can be begun");
        board.open[1].depends_on = Some(vec!["1-1-a".into()]);
        let expected = "1-1-a is `deferred` on the board; 1-2-b depends on 1-1-a, which is not done; \
                        1-3-c depends on 1-2-b, which is not done";
        assert_eq!(next_of(&board, &whole, &[]), expected);
    }

    #[test]
    fn the_scope_limits_what_is_taken_but_not_what_is_needed() {
        let board = facts(vec![story("1-1-a", "backlog"), story("1-2-b", "backlog"), story("2-1-c", "blocked")]);
        let epic = SprintScope { epic: Some("2".into()), ..SprintScope::default() };
        assert_eq!(next_of(&board, &epic, &[]), "2-1-c is `blocked` on the board");
        let named = SprintScope { stories: vec!["1-2-b".into()], ..SprintScope::default() };
        assert_eq!(next_of(&board, &named, &[]), "1-2-b depends on 1-1-a, which is not done");
        let few = SprintScope { max_stories: Some(0), ..SprintScope::default() };
        assert!(next_of(&board, &few, &[]).starts_with("1-1-a is left for later: --max-stories was reached; "));
    }
}

//! Which retrospectives a sprint would hold if every story went well.

use alloc::vec::Vec;

use crate::{
    sprint::{
        facts::SprintFacts,
        order::SprintOrder,
        selection::{ForecastRetrospective, ForecastStory},
    },
    story::order::StoryGoal,
};

/// Lists the retrospectives that a sprint would hold, in their order, if it developed these stories.
pub fn forecast_retrospectives(
    order: &SprintOrder,
    facts: &SprintFacts,
    stories: &[ForecastStory],
) -> Vec<ForecastRetrospective> {
    if order.retrospective.is_none() {
        return Vec::new();
    }
    let missed = facts.finished_epics.iter().filter(|epic| order.repeats_retrospective(epic));
    let mut retrospectives: Vec<ForecastRetrospective> =
        missed.map(|epic| ForecastRetrospective { epic: epic.clone(), after: None }).collect();
    // A board that is too long is not listed to its end, and stories that stop at the review finish no epic.
    let is_whole = facts.open.len() as u32 >= facts.open_count;
    if !is_whole || order.story.goal != StoryGoal::Done {
        return retrospectives;
    }
    for (position, last) in stories.iter().enumerate() {
        let Some(epic) = facts.find_story(&last.story).map(|story| &story.epic) else { continue };
        let is_done_by_then = |key: &str| stories[..=position].iter().any(|done| done.story == key);
        let mut rest = facts.open.iter().filter(|story| story.epic == *epic && !is_done_by_then(&story.key));
        if facts.open_retrospectives.contains(epic) && rest.next().is_none() {
            retrospectives.push(ForecastRetrospective { epic: epic.clone(), after: Some(last.story.clone()) });
        }
    }
    retrospectives
}

#[cfg(test)]
mod tests {
    use alloc::{
        string::{String, ToString},
        vec,
    };

    use super::*;
    use crate::{
        development::workspace::TargetBranch,
        sprint::facts::OpenStory,
        story::{facts::StoryName, order::StoryOrder},
        tasks::instructions::TaskOpening,
    };
    use tribunal_engine::{ids::CommitId, limits::RunLimits};

    fn sample_order() -> SprintOrder {
        let story = StoryOrder::new(StoryName::from_key(""), TargetBranch { name: "main".into(), created_at: None });
        let mut order = SprintOrder::new(story, RunLimits::for_development().as_share());
        order.retrospective = Some(TaskOpening::default());
        order
    }

    fn sample_facts() -> SprintFacts {
        let open: Vec<OpenStory> = ["1-1-a", "2-1-b", "2-2-c"]
            .iter()
            .map(|key| OpenStory { key: key.to_string(), epic: key[..1].to_string(), ..OpenStory::default() })
            .collect();
        SprintFacts {
            open_count: 3,
            open,
            finished_epics: vec!["0".into()],
            open_retrospectives: vec!["0".into(), "1".into(), "2".into()],
            ..SprintFacts::default()
        }
    }

    fn describe_all(order: &SprintOrder, facts: &SprintFacts, planned: &[&str]) -> Vec<String> {
        let stories: Vec<ForecastStory> =
            planned.iter().map(|key| ForecastStory { story: key.to_string(), reason: String::new() }).collect();
        forecast_retrospectives(order, facts, &stories).iter().map(ForecastRetrospective::describe).collect()
    }

    #[test]
    fn a_retrospective_follows_the_last_story_of_its_epic() {
        let (mut order, mut facts) = (sample_order(), sample_facts());
        assert_eq!(
            describe_all(&order, &facts, &["1-1-a", "2-1-b", "2-2-c"]),
            ["retrospective of epic 1 after 1-1-a", "retrospective of epic 2 after 2-2-c"]
        );
        assert_eq!(describe_all(&order, &facts, &["2-2-c"]), Vec::<String>::new(), "2-1-b is still open");
        facts.open_retrospectives.clear();
        assert_eq!(describe_all(&order, &facts, &["1-1-a"]), Vec::<String>::new(), "it was held");
        order.retrospective = None;
        assert_eq!(describe_all(&order, &sample_facts(), &["1-1-a"]), Vec::<String>::new());
    }

    #[test]
    fn a_retrospective_that_an_earlier_sprint_missed_comes_first_unless_something_else_was_asked_for() {
        let (mut order, facts) = (sample_order(), sample_facts());
        order.missed_retrospectives = vec!["0".into()];
        assert_eq!(
            describe_all(&order, &facts, &[]),
            ["retrospective of epic 0 at the beginning: an earlier sprint could not hold it"]
        );
        order.scope.epic = Some("1".into());
        assert_eq!(describe_all(&order, &facts, &[]), Vec::<String>::new());
        order.scope.epic = None;
        order.story.branch.created_at = Some(CommitId::new("base"));
        assert_eq!(describe_all(&order, &facts, &[]), Vec::<String>::new());
    }
}

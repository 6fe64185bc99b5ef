//! The settings of a run that goes on: what the user has set by now replaces what the run was started with, and what is not set
//! stays as it is in the run.
//!
//! A row of the table may be pinned in a kind of run ([`table::SettingRow::pinned_in`]): what has begun depends on it, so it stays as
//! it was. The user is told of each pinned setting that has another value now. Agents are always chosen anew.

use tribunal_workflows::{
    findings::agent_role::AgentRole,
    runs::{kinds::RunOrder, plan::RunPlan, settings::AgentSpec},
    story::order::StoryOrder,
    tasks::client::{ClientSpec, JobKind},
};

use super::{
    layers::EffectiveSettings,
    selection::uses_seat_models,
    table::{self, RowTarget},
    typed::{AgentChoice, SeatModels, TypedSettings},
};

/// What a run is pinned to.
#[derive(Clone, Debug)]
pub(crate) struct PinnedRun {
    kind_name: &'static str,
    /// The fields as the run has them.
    typed_settings: TypedSettings,
}

impl PinnedRun {
    pub fn from_plan(plan: &RunPlan) -> PinnedRun {
        let mut typed_settings = TypedSettings {
            run: plan.settings.clone(),
            agents: AgentChoice::restore(&plan.settings.agents),
            ..TypedSettings::default()
        };
        match &plan.order {
            RunOrder::Review(order) => typed_settings.review = order.clone(),
            RunOrder::Loop(order) => {
                typed_settings.loop_run = order.clone();
                typed_settings.review.baseline = !order.skip_baseline;
                typed_settings.development.loop_choices.accepts_checkbox = order.completion.checkbox_file.is_some();
            }
            RunOrder::Story(order) => typed_settings.restore_story(order),
            RunOrder::Sprint(order) => {
                typed_settings.restore_story(&order.story);
                typed_settings.development.sprint.story_share = order.story_share;
                typed_settings.development.sprint.holds_retrospectives = order.retrospective.is_some();
            }
            // They have no settings of their own.
            _ => {}
        }
        PinnedRun { kind_name: plan.order.kind_name(), typed_settings }
    }

    /// Every field as the run has it, or as the user has set it by now if the row is not pinned.
    pub fn apply_changes(&self, effective: &EffectiveSettings) -> TypedSettings {
        let mut typed_settings = self.typed_settings.clone();
        // The two spellings of checks are one list.
        if effective.is_set("checks") || effective.is_set("verify") {
            typed_settings.run.checks.clear();
        }
        for setting_row in table::all_rows().filter(|row| !row.pinned_in.contains(&self.kind_name)) {
            if let Some(setting_value) =
                effective.value_at(setting_row.path).filter(|_| effective.is_set(setting_row.path))
            {
                setting_row.apply_value(setting_value, &mut typed_settings);
            }
        }
        typed_settings
    }

    /// Describes the pinned settings that have another value now; `None` if there are none.
    pub fn describe_unchanged(&self, effective: &EffectiveSettings) -> Option<String> {
        let describe_row = |setting_row: &table::SettingRow| {
            let RowTarget::Field(field) = setting_row.target else { return None };
            let set_value = effective.value_at(setting_row.path).filter(|_| effective.is_set(setting_row.path))?;
            let kept_value = (field.read)(&self.typed_settings);
            (kept_value.as_ref() != Some(set_value)).then(|| match &kept_value {
                Some(kept_value) => format!("`{}` is {kept_value} and not {set_value}", setting_row.path),
                None => format!("`{}` is not set and does not become {set_value}", setting_row.path),
            })
        };
        let pinned_rows = table::all_rows().filter(|row| row.pinned_in.contains(&self.kind_name));
        let unchanged: Vec<String> = pinned_rows.filter_map(describe_row).collect();
        (!unchanged.is_empty())
            .then(|| format!("what is fixed when a run starts stays as it was: {}", unchanged.join(", ")))
    }
}

/// Whether a setting stays as it is in runs of a kind that have begun.
pub(crate) fn is_pinned_in(setting_path: &str, kind_name: &str) -> bool {
    table::all_rows().any(|row| row.path == setting_path && row.pinned_in.contains(&kind_name))
}

impl AgentChoice {
    /// What the agents of a run show of it.
    fn restore(agents: &[AgentSpec]) -> AgentChoice {
        let clients: Vec<&ClientSpec> = agents.iter().filter_map(|agent| agent.driver.client_spec()).collect();
        let duties = |job| {
            let takers = agents.iter().filter(|agent| uses_seat_models(agent));
            takers.filter_map(move |agent| agent.duties.get(&job))
        };
        let seat_model = |role| duties(JobKind::Review).find_map(|duty| duty.seat_models.get(&role).cloned());
        AgentChoice {
            used: None,
            kept: agents.iter().map(|agent| agent.name.to_string()).collect(),
            continue_sessions: clients.is_empty() || clients.iter().any(|client| !client.fresh),
            fixer_model: duties(JobKind::Fix).find_map(|duty| duty.model.clone()),
            // Those without a model of their own have that of every reviewer.
            seat_models: SeatModels {
                reviewer: seat_model(AgentRole::Adversarial),
                party: seat_model(AgentRole::Party),
                elicitation: seat_model(AgentRole::Elicitation),
            },
        }
    }
}

impl TypedSettings {
    fn restore_story(&mut self, order: &StoryOrder) {
        self.development.story = order.clone();
        self.review.panel = order.review.panel.clone();
        self.review.fixers = order.review.fixers.clone();
        self.review.level = Some(order.review.level);
        self.review.baseline = !order.skip_baseline;
    }
}

//! What a fresh clone of the project would need, from the names of its files. Set-up is the user's to decide, so this is advice
//! and never a warning.

use std::{collections::BTreeSet, fs, path::Path};

use tribunal_runner::git;

use super::document::{DoctorSeedOption, DoctorSetupStep, DoctorWorkspaceAdvice};
use crate::{
    preflight::setup_advice::{self, ProjectListing},
    settings::{EffectiveSettings, SettingLayer},
};

/// The settings that the advice is about.
const SETUP_SETTING: &str = "workspace.setup";
const SEED_SETTING: &str = "workspace.seed";

/// The most directories of the root that are looked into. A project with more keeps its parts elsewhere.
const MAX_DIRECTORIES: usize = 200;

/// Returns the advice; `None` if there is nothing to suggest, or if the user has set it already.
pub(super) fn suggest_workspace(project_root: &Path, effective: &EffectiveSettings) -> Option<DoctorWorkspaceAdvice> {
    let is_set = |setting_path: &str| {
        effective.values.get(setting_path).is_some_and(|setting| setting.origin.layer != SettingLayer::Default)
    };
    if is_set(SETUP_SETTING) {
        return None;
    }
    let listing = list_project(project_root);
    let steps = setup_advice::suggest_setup(&listing);
    let candidates = setup_advice::find_seed_candidates(&listing.root_names);
    // Git is only asked if there is something to ask about.
    let seeds = if candidates.is_empty() || is_set(SEED_SETTING) {
        Vec::new()
    } else {
        setup_advice::suggest_seeds(&candidates, &git::find_ignored(project_root, candidates.iter()))
    };
    if steps.is_empty() && seeds.is_empty() {
        return None;
    }
    Some(DoctorWorkspaceAdvice {
        settings: setup_advice::render_settings_lines(&steps, &seeds),
        setup: steps
            .into_iter()
            .map(|step| DoctorSetupStep { lock_file: step.lock_file, command: step.command, note: step.note })
            .collect(),
        seeds: seeds.into_iter().map(|seed| DoctorSeedOption { path: seed.path, secret: seed.is_secret }).collect(),
    })
}

/// Lists the root and its directories. What cannot be read has no names.
fn list_project(project_root: &Path) -> ProjectListing {
    let mut listing = ProjectListing { root_names: list_files(project_root), ..ProjectListing::default() };
    let Ok(entries) = fs::read_dir(project_root) else { return listing };
    // Links are not followed: they may lead anywhere.
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    for entry in directories.take(MAX_DIRECTORIES) {
        if let Ok(directory_name) = entry.file_name().into_string() {
            listing.names_by_directory.insert(directory_name, list_files(&entry.path()));
        }
    }
    listing
}

fn list_files(directory: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeSet::new() };
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

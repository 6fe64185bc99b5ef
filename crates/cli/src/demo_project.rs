//! The project that `tribunal demo` unpacks, and the commands in it.

use crate::{
    settings::{SETTINGS_FILE, items_of_text},
    trust::trust_item::TrustItem,
};

/// The document that the demo reviews.
pub(crate) const DEMO_SUBJECT: &str = "_bmad-output/planning-artifacts/prd.md";

/// The demo's files: path and text.
pub(crate) const DEMO_FILES: [(&str, &str); 5] = [
    ("README.md", include_str!("../demo/README.md")),
    ("tribunal.yaml", include_str!("../demo/tribunal.yaml")),
    ("demo/court.yaml", include_str!("../demo/demo/court.yaml")),
    ("_bmad/bmm/config.yaml", include_str!("../demo/_bmad/bmm/config.yaml")),
    (DEMO_SUBJECT, include_str!("../demo/_bmad-output/planning-artifacts/prd.md")),
];

/// The commands of the bundled project. They come with Tribunal, so the user is not asked about them.
pub(crate) fn bundled_items() -> Vec<TrustItem> {
    DEMO_FILES
        .iter()
        .filter(|(file_name, _)| *file_name == SETTINGS_FILE)
        .flat_map(|(file_name, file_text)| items_of_text(file_name, file_text))
        .collect()
}

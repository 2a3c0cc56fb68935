//! The resource: attributes that describe the program.

use opentelemetry::KeyValue;

use crate::attributes;

/// Returns the attributes that the specification requires, and those of the program, which have
/// precedence.
pub(crate) fn with_defaults(own: Vec<KeyValue>) -> Vec<KeyValue> {
    // #[gamma::skip(collection.reverse_array, reason = "they are sorted")]
    let defaults = [
        KeyValue::new("service.name", unknown_service()),
        KeyValue::new("telemetry.sdk.language", "rust"),
        KeyValue::new("telemetry.sdk.name", env!("CARGO_PKG_NAME")),
        KeyValue::new("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
    ];
    let all: Vec<KeyValue> = defaults.into_iter().chain(own).collect();
    attributes::canonical(&all).into_iter().cloned().collect()
}

fn unknown_service() -> String {
    let program = std::env::current_exe().ok();
    match program.as_deref().and_then(std::path::Path::file_name) {
        Some(name) => format!("unknown_service:{}", name.to_string_lossy()),
        None => "unknown_service".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_says_counts_more() {
        let own = vec![KeyValue::new("service.name", "shop"), KeyValue::new("zone", 7)];
        let all = with_defaults(own);
        assert_eq!(all.len(), 5);
        assert!(all.contains(&KeyValue::new("service.name", "shop")));
        assert!(all.contains(&KeyValue::new("zone", 7)));
        let program = std::env::current_exe().expect("a program");
        let program = program.file_name().expect("a name").to_string_lossy();
        let expected = [
            KeyValue::new("service.name", format!("unknown_service:{program}")),
            KeyValue::new("telemetry.sdk.language", "rust"),
            KeyValue::new("telemetry.sdk.name", "percid-opentelemetry"),
            KeyValue::new("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
        ];
        assert_eq!(with_defaults(Vec::new()), expected);
    }
}

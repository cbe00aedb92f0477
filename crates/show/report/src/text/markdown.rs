pub(crate) fn document(_: &crate::RunView<'_>) -> String { String::new() }

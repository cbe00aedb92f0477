pub(crate) fn verdict(_: &crate::RunView<'_>, _: usize, _: bool) -> String { String::new() }

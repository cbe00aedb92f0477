//! The texts of all statements.

use iostrata_database::target::{
    Access, Assign, Change, Column, ColumnType, Fold, Index, JoinBelow, Order, Table, TableWords,
};

use super::*;

/// Two tables: lines (w, o, n; item, amount, note) and stock (w, item; quantity).
fn schema() -> Schema {
    let int = ColumnType::Int { bytes: 4 };
    let column = |name: &str, of| Column { name: name.to_owned(), of, is_nullable: false };
    let amount = ColumnType::Decimal { digits: 6, scale: 2 };
    let lines = Table {
        name: "line".to_owned(),
        columns: vec![
            column("w", int),
            column("o", int),
            column("n", ColumnType::Int { bytes: 1 }),
            column("item", int),
            column("amount", amount),
            Column { name: "note".to_owned(), of: ColumnType::Varchar(24), is_nullable: true },
        ],
        key: vec![0, 1, 2],
        indexes: vec![
            Index { name: "by_item".to_owned(), columns: vec![3], is_late: false },
            Index { name: "by_note".to_owned(), columns: vec![5, 0], is_late: true },
        ],
        auto_increment: false,
    };
    let stock = Table {
        name: "stock".to_owned(),
        columns: vec![column("w", int), column("i", int), column("q", int)],
        key: vec![0, 1],
        indexes: Vec::new(),
        auto_increment: false,
    };
    Schema { tables: vec![lines, stock] }
}

fn takes(template: &Template) -> Vec<usize> {
    template.takes.iter().map(|(at, _)| *at).collect()
}

fn scanned(fold: Fold, limit: Option<u32>, locks: bool, order: Order) -> Template {
    let (columns, index) = (vec![4], None);
    let access =
        Access::Scan { index, prefix: 1, is_range: true, order, limit, locks, columns, fold };
    scan(&schema(), 0, &access)
}

#[test]
fn keys_become_equalities_and_lists() {
    let one = get(&schema(), 1, &[2, 0], false, 1);
    assert_eq!(one.text, "SELECT `q`, `w` FROM `stock` WHERE `w` = ? AND `i` = ?");
    let two = get(&schema(), 1, &[2], true, 2);
    let expected = "SELECT `q` FROM `stock` WHERE (`w` = ? AND `i` = ?) OR (`w` = ? AND `i` = ?) \
                    FOR UPDATE";
    assert_eq!(two.text, expected);
    assert_eq!(takes(&two), [0, 1, 2, 3]);
    let mut flat = schema();
    flat.tables[1].key = vec![1];
    assert_eq!(delete(&flat, 1, 3).text, "DELETE FROM `stock` WHERE `i` IN (?, ?, ?)");
}

#[test]
fn scans_are_ordered_by_the_whole_order() {
    let last = scanned(Fold::Rows, Some(1), false, Order::Descending);
    let expected = "SELECT `amount` FROM `line` WHERE `w` = ? AND `o` BETWEEN ? AND ? \
                    ORDER BY `w` DESC, `o` DESC, `n` DESC LIMIT 1";
    assert_eq!(last.text, expected);
    assert_eq!(takes(&last), [0, 1, 2]);
    let access = Access::Scan {
        index: Some(0),
        prefix: 0,
        is_range: false,
        order: Order::Ascending,
        limit: None,
        locks: true,
        columns: vec![0],
        fold: Fold::Rows,
    };
    let all = scan(&schema(), 0, &access);
    assert_eq!(all.text, "SELECT `w` FROM `line` ORDER BY `item`, `w`, `o`, `n` FOR UPDATE");
}

#[test]
fn folds_are_the_servers_own() {
    let bounds = "FROM `line` WHERE `w` = ? AND `o` BETWEEN ? AND ?";
    let plain = |fold| scanned(fold, None, false, Order::Ascending).text;
    assert_eq!(plain(Fold::Sum), format!("SELECT SUM(`amount`) {bounds}"));
    assert_eq!(plain(Fold::Sorted), format!("SELECT `amount` {bounds} ORDER BY `amount`"));
    assert_eq!(
        plain(Fold::Distinct),
        format!("SELECT DISTINCT `amount` {bounds} ORDER BY `amount`")
    );
    let limited = scanned(Fold::Sum, Some(5), true, Order::Ascending).text;
    let expected = format!(
        "SELECT SUM(`amount`) FROM (SELECT `amount` {bounds} \
         ORDER BY `w`, `o`, `n` LIMIT 5 FOR UPDATE) AS d"
    );
    assert_eq!(limited, expected);
}

#[test]
fn rows_are_counted_through_a_join() {
    let join = JoinBelow { prefix: 1, other: 1, leads_by: vec![0, 3], tested: 2 };
    let template = count_below(&schema(), 0, &join);
    let expected = "SELECT COUNT(DISTINCT o.`i`) FROM `line` AS t STRAIGHT_JOIN `stock` AS o \
                    ON o.`w` = t.`w` AND o.`i` = t.`item` \
                    WHERE t.`w` = ? AND t.`o` BETWEEN ? AND ? AND o.`q` < ?";
    assert_eq!(template.text, expected);
    assert_eq!(takes(&template), [0, 1, 2, 3]);
}

#[test]
fn changes_become_expressions() {
    let set = [
        Assign { column: 2, change: Change::AddConst(1) },
        Assign { column: 3, change: Change::SubtractRefill { least: 10, by: 91 } },
        Assign { column: 4, change: Change::Add },
        Assign { column: 5, change: Change::Prepend { most: 24 } },
        Assign { column: 1, change: Change::Set },
    ];
    let template = update(&schema(), 0, Expressions { prefix: 2, set: &set }, 1);
    let left = "`item` - CAST(? AS SIGNED)";
    let expected = format!(
        "UPDATE `line` SET `n` = `n` + 1, \
         `item` = CASE WHEN {left} < 10 THEN {left} + 91 ELSE {left} END, \
         `amount` = `amount` + CAST(? AS DECIMAL(6, 2)), \
         `note` = COALESCE(LEFT(CONCAT(?, `note`), 24), `note`), `o` = ? \
         WHERE `w` = ? AND `o` = ?"
    );
    assert_eq!(template.text, expected);
    assert_eq!(takes(&template), [2, 2, 2, 3, 4, 5, 0, 1]);
    let prefixes = Expressions { prefix: 2, set: &set[2..3] };
    let two = update(&schema(), 0, prefixes, 2);
    assert!(two.text.ends_with("WHERE (`w` = ? AND `o` = ?) OR (`w` = ? AND `o` = ?)"));
    assert_eq!(takes(&two), [2, 0, 1, 3, 4]);
    let locked = before(&schema(), 0, prefixes, &[4], 1);
    let expected = "SELECT `amount` FROM `line` WHERE `w` = ? AND `o` = ? \
                    ORDER BY `w`, `o`, `n` FOR UPDATE";
    assert_eq!(locked.text, expected);
}

#[test]
fn many_rows_get_their_values_by_one_join() {
    let set = [Assign { column: 2, change: Change::Set }];
    let template = absolute(&schema(), 1, &set, 2);
    let typed = "CAST(? AS SIGNED)";
    let expected = format!(
        "UPDATE (SELECT {typed} AS v0, {typed} AS v1, {typed} AS v2 \
         UNION ALL SELECT {typed}, {typed}, {typed}) AS d \
         STRAIGHT_JOIN `stock` AS t ON t.`w` = d.v0 AND t.`i` = d.v1 SET t.`q` = d.v2"
    );
    assert_eq!(template.text, expected);
    assert_eq!(takes(&template), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn tables_are_made_as_declared() {
    let schema = schema();
    let expected = "CREATE TABLE `line` (`w` INT NOT NULL, `o` INT NOT NULL, \
                    `n` TINYINT NOT NULL, `item` INT NOT NULL, `amount` DECIMAL(6, 2) NOT NULL, \
                    `note` VARCHAR(24) NULL, PRIMARY KEY (`w`, `o`, `n`), \
                    KEY `by_item` (`item`)) ENGINE = InnoDB";
    assert_eq!(
        create(&schema.tables[0], made_by(Some("InnoDB"), &TableWords::default())),
        expected
    );
    let late = "ALTER TABLE `line` ADD KEY `by_note` (`note`, `w`)";
    assert_eq!(late_indexes(&schema.tables[0], &[]).as_deref(), Some(late));
    assert_eq!(late_indexes(&schema.tables[0], &["By_Note".to_owned()]), None);
    let mut counted = schema.clone();
    counted.tables[1].key = vec![1];
    counted.tables[1].auto_increment = true;
    assert!(
        create(&counted.tables[1], made_by(None, &TableWords::default()))
            .contains("`i` INT NOT NULL AUTO_INCREMENT")
    );
    assert_eq!(drop_table(&schema, 1), "DROP TABLE IF EXISTS `stock`");
    assert_eq!(name("a`b"), "`a``b`");
    let insert = insert(&schema, 1, 2);
    let expected = "INSERT INTO `stock` (`w`, `i`, `q`) VALUES (?, ?, ?), (?, ?, ?)";
    assert_eq!((insert.text.as_str(), takes(&insert).len()), (expected, 6));
}

fn made_by<'a>(engine: Option<&'a str>, words: &'a TableWords) -> TableOptions<'a> {
    TableOptions { engine, words, adds_key: false }
}

#[test]
fn a_table_without_a_key_gets_one_where_the_server_asks_for_it() {
    let mut table = schema().tables[0].clone();
    let words = TableWords { options: "ROW_FORMAT=COMPRESSED".to_owned(), key_is_secondary: true };
    let secondary = create(&table, made_by(None, &words));
    assert!(secondary.contains("KEY `xid` (") && !secondary.contains("PRIMARY"), "{secondary}");
    assert!(secondary.ends_with(") ROW_FORMAT=COMPRESSED"), "{secondary}");
    table.key.clear();
    table.indexes.clear();
    let making = made_by(None, &words);
    assert!(!create(&table, making).contains("KEY"));
    let added = create(&table, TableOptions { adds_key: true, ..making });
    assert!(added.contains("`iostrata_id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY"), "{added}");
}

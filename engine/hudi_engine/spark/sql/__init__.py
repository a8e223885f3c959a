"""SQL statements on Hudi tables: a statement in, its result out (`StatementRouter.route`)."""

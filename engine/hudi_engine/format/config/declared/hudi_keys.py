"""Keys of Apache Hudi 0.15 and 1.2 that are no options of this engine, so that a misspelling can be told from them."""

from __future__ import annotations

from functools import cache

_BY_GROUP = """
hoodie.allow: empty.commit
hoodie.archive: async block.on.latest.clean.ectr delete.parallelism
hoodie.archivelog: folder
hoodie.assume: date.partitioning
hoodie.auto: adjust.lock.configs commit
hoodie.avro: schema schema.validate write.support.class
hoodie.base: file.format path
hoodie.block: writes.on.speculative.execution
hoodie.bloom: index.bucketized.checking index.bucketized.checking.enable.dynamic.parallelism
  index.fileid.key.sorting.enable index.input.storage.level index.keys.per.bucket index.parallelism
  index.use.caching index.use.metadata index.use.treebased.filter
hoodie.bootstrap: base.path data.queries.only full.input.provider index.class index.enable index.type
  mode.selector mode.selector.regex mode.selector.regex.mode parallelism partitionpath.translator.class
hoodie.bucket: index.max.num.buckets index.merge.threshold index.min.num.buckets index.partition.expressions
  index.partition.rule.type index.query.pruning index.remote.partitioner.enable index.split.threshold
hoodie.bulkinsert: are.partitioner.records.sorted overwrite.operation.type schema.ddl sort.suffix.record_key
  user.defined.partitioner.class
hoodie.cdc: file.group.iterator.memory.spill.bytes
hoodie.clean: allow.multiple async async.enabled delete.bootstrap.base.file max.commits.to.clean
  multiple.enabled optimize.using.local.engine.context parallelism partition.filter.regex
  partition.filter.selected trigger.strategy
hoodie.cleaner: delete.bootstrap.base.file parallelism partition.filter.regex partition.filter.selected
hoodie.client: init.callback.classes
hoodie.clustering: async.enabled async.max.commits enable.expirations expiration.threshold.mins
  fail.on.pending.ingestion.during.conflict.resolution group.read.parallelism max.parallelism
  plan.generation.use.local.engine.context plan.strategy.binary.copy.schema.evolution.enable
  plan.strategy.earliest.commit.to.cluster plan.strategy.file.slices.sort.by
hoodie.common: diskmap.compression.enabled spillable.diskmap.type
hoodie.compact: merge.handle.class
hoodie.compaction: lazy.block.read partition.path.regex plan.generator record.merger.strategy reverse.log.read
hoodie.consistency: check.enabled check.initial_interval_ms check.max_checks check.max_interval_ms
hoodie.datasource: clustering.async.enable clustering.inline.enable compaction.async.enable
  hive_sync.assume_date_partitioning hive_sync.batch_num hive_sync.bucket_sync_spec
  hive_sync.filter_pushdown_enabled hive_sync.filter_pushdown_max_size hive_sync.partition_fields
  hive_sync.password hive_sync.recreate_table_on_error hive_sync.use_spark_catalog hive_sync.username
  insert.dup.policy merge.type meta.sync.base.path meta_sync.condition.sync overwrite.mode
  query.incremental.format query.type read.begin.instanttime read.create.filesystem.relation
  read.end.instanttime read.extract.partition.values.from.path read.file.index.list.partitions.from.catalog
  read.file.index.listing.mode read.file.index.listing.partition-path-prefix.analysis.enabled
  read.file.index.optimize.listing.using.path.filter read.incr.fallback.fulltablescan.enable read.incr.filters
  read.incr.path.glob read.incr.skip_cluster read.incr.skip_compact read.incr.table.version
  read.partition.value.extractor.enabled read.paths read.schema.use.end.instanttime read.streaming.table.version
  read.table.valued.function.filesystem.relation.subpath read.table.valued.function.timeline.relation
  read.table.valued.function.timeline.relation.archived read.use.new.parquet.file.format streaming.startOffset
  view.type write.operation write.partitionpath.field write.partitions.to.delete write.precombine.field
  write.reconcile.schema write.record.merger.impls write.record.merger.strategy write.recordkey.field
  write.row.writer.enable write.schema.allow.auto.evolution.column.drop write.secondarykey.column
  write.slash.separated.date.partitioning write.storage.type write.streaming.checkpoint.identifier
  write.streaming.disable.compaction write.streaming.ignore.failed.batch write.streaming.retry.count
  write.streaming.retry.interval.ms write.table.name write.table.type
hoodie.delete: shuffle.parallelism
hoodie.deltastreamer: keygen.datetime.parser.class source.kafka.value.deserializer.class
hoodie.embed: timeline.server timeline.server.async timeline.server.gzip timeline.server.port
  timeline.server.reuse.enabled timeline.server.threads
hoodie.enable: data.skipping
hoodie.errortable: base.path enable insert.shuffle.parallelism source.rdd.persist target.table.name
  upsert.shuffle.parallelism validate.recordcreation.enable validate.targetschema.enable write.class
  write.failure.strategy write.union.enable
hoodie.expression: index.function index.range.metadata.storage.level index.type
hoodie.fail: job.on.duplicate.data.file.detection on.timeline.archiving writes.on.inline.table.service.exception
hoodie.file: group.reader.enabled index.cache.spillable.mem index.cache.use.spillable.map index.enable
  listing.parallelism
hoodie.fileid: prefix.provider.class
hoodie.filesystem: operation.retry.enable operation.retry.exceptions operation.retry.initial_interval_ms
  operation.retry.max_interval_ms operation.retry.max_numbers remote.backup.view.enable
  view.incr.timeline.sync.enable view.remote.host view.remote.port view.remote.retry.enable
  view.remote.retry.exceptions view.remote.retry.initial_interval_ms view.remote.retry.max_interval_ms
  view.remote.retry.max_numbers view.remote.timeout.secs view.rocksdb.base.path view.secondary.type
  view.spillable.bootstrap.base.file.mem.fraction view.spillable.clustering.mem.fraction
  view.spillable.compaction.mem.fraction view.spillable.dir view.spillable.log.compaction.mem.fraction
  view.spillable.mem view.spillable.replaced.mem.fraction view.type
hoodie.finalize: write.parallelism
hoodie.fs: atomic_creation.support
hoodie.global: index.reconcile.parallelism simple.index.parallelism
hoodie.hbase: index.update.partition.path
hoodie.hfile: block.cache.enabled block.cache.size block.cache.ttl.minutes block.size compression.algorithm
  max.file.size writes.allow.duplicates
hoodie.index: class hbase.bucket.number hbase.desired_puts_time_in_secs hbase.dynamic_qps hbase.get.batch.size
  hbase.kerberos.user.keytab hbase.kerberos.user.principal hbase.master.kerberos.principal
  hbase.max.qps.fraction hbase.max.qps.per.region.server hbase.min.qps.fraction hbase.put.batch.size
  hbase.put.batch.size.autocompute hbase.qps.allocator.class hbase.qps.fraction
  hbase.regionserver.kerberos.principal hbase.rollback.sync hbase.security.authentication
  hbase.sleep.ms.for.get.batch hbase.sleep.ms.for.put.batch hbase.table hbase.zk.connection_timeout_ms
  hbase.zk.session_timeout_ms hbase.zknode.path hbase.zkpath.qps_root hbase.zkport hbase.zkquorum name
hoodie.insert: shuffle.parallelism
hoodie.internal: schema
hoodie.io: factory.class
hoodie.keygen: datetime.parser.class
hoodie.lance: max.file.size read.allocator.size.bytes read.metadata.allocator.size.bytes
  write.allocator.size.bytes write.flush.byte.watermark
hoodie.layout: optimize.data.skipping.enable optimize.enable
hoodie.log: compaction.blocks.threshold compaction.enable compaction.inline
hoodie.markers: delete.parallelism timeline_server_based.batch.interval_ms
  timeline_server_based.batch.num_threads
hoodie.memory: compaction.fraction dfs.buffer.max.size merge.fraction writestatus.failure.fraction
hoodie.merge: allow.duplicate.on.inserts data.validation.enabled small.file.group.candidates.limit
  use.record.positions
hoodie.meta: sync.client.tool.class sync.incremental sync.metadata_file_listing
  sync.no_partition_metadata sync.sync_snapshot_with_table_name sync.touch.partitions.enabled
hoodie.meta_sync: global.replicate.timestamp spark.version
hoodie.metadata: - auto.delete.partitions auto.initialize bloom.filter.dynamic.max.entries bloom.filter.enable
  bloom.filter.fpp bloom.filter.num.entries bloom.filter.type compact.max.delta.commits
  compact.max.delta.seconds compact.trigger.strategy derive.from.datatable.clean.policy dir.filter.regex enable
  fallback.enable file.cache.max.size.mb global.record.level.index.enable
  global.record.level.index.max.filegroup.count global.record.level.index.min.filegroup.count index.async
  index.bloom.filter.column.list index.bloom.filter.enable index.bloom.filter.file.group.count
  index.bloom.filter.parallelism index.check.timeout.seconds index.column.stats.column.list
  index.column.stats.enable index.column.stats.file.group.count index.column.stats.inMemory.projection.threshold
  index.column.stats.max.columns.to.index index.column.stats.parallelism
  index.column.stats.processing.mode.override index.drop index.expression.column index.expression.enable
  index.expression.file.group.count index.expression.options index.expression.parallelism
  index.partition.stats.enable index.partition.stats.file.group.count index.partition.stats.parallelism
  index.secondary.column index.secondary.enable index.secondary.parallelism log.compaction.blocks.threshold
  log.compaction.enable max.deltacommits.when_pending max.init.parallelism max.logfile.size
  max.reader.buffer.size max.reader.memory metrics.enable optimized.log.blocks.scan.enable
  partitioned.record.index.max.filegroup.count partitioned.record.index.min.filegroup.count
  range.repartition.random.seed range.repartition.sampling.fraction
  range.repartition.target.records.per.partition record.index.enable
  record.index.enable.validation.on.initialization record.index.growth.factor record.index.max.filegroup.count
  record.index.max.filegroup.size record.index.min.filegroup.count record.level.index.defer.init
  record.level.index.enable record.level.index.max.filegroup.count record.level.index.min.filegroup.count
  record.preparation.parallelism repartition.default.partitions repartition.min.partitions.threshold
  spillable.map.path streaming.write.datatable.write.statuses.coalesce.divisor streaming.write.enabled
  table.service.manager.actions table.service.manager.enabled write.concurrency.mode
  write.fail.on.table.service.failures
hoodie.metaserver: - connect.retries connect.retry.delay enabled uris
hoodie.metrics: - cloudwatch cloudwatch.maxDatumsPerRequest cloudwatch.metric.prefix cloudwatch.namespace
  cloudwatch.report.period.seconds configs.properties datadog datadog.api.key datadog.api.key.skip.validation
  datadog.api.key.supplier datadog.api.site datadog.api.timeout.seconds datadog.metric.host
  datadog.metric.prefix datadog.metric.tags datadog.report.period.seconds executor.enable graphite graphite.host
  graphite.metric.prefix graphite.port graphite.report.period.seconds jmx jmx.host jmx.port lock.enable m3
  m3.env m3.host m3.port m3.service m3.tags prometheus prometheus.port pushgateway
  pushgateway.delete.on.shutdown pushgateway.host pushgateway.job.name pushgateway.port
  pushgateway.random.job.name.suffix pushgateway.report.labels pushgateway.report.period.seconds reporter.class
  reporter.type
hoodie.metricscompaction: log.blocks.on
hoodie.optimistic: consistency.guard.sleep_time_ms
hoodie.optimized: log.blocks.scan.enable
hoodie.orc: block.size compression.codec max.file.size stripe.size
hoodie.parquet: bloom.filter.enabled compression.ratio field_id.write.enabled flink.rowdata.write.support.class
  outputtimestamptype spark.row.write.support.class write.config.injector.class write.utc-timezone.enabled
  writelegacyformat.enabled
hoodie.partition: metafile.use.base.format ttl.inline ttl.management.strategy.type ttl.strategy.class
  ttl.strategy.days.retain ttl.strategy.max.delete.partitions ttl.strategy.partition.selected
hoodie.payload: event.time.field ordering.field
hoodie.post: commit.failures.ignored
hoodie.precommit: validators validators.equality.sql.queries validators.failure.policy
  validators.inequality.sql.queries validators.single.value.sql.queries
  validators.streaming.offset.tolerance.percentage
hoodie.prewrite: cleaner.policy validators
hoodie.properties: - backup
hoodie.query: as.ro.table
hoodie.read: blob.inline.mode timeline.holes.resolution.policy
hoodie.record: index.input.storage.level index.update.partition.path index.use.caching
  merge.property.hoodie.payload.delete.field merge.property.hoodie.payload.delete.marker
  merge.property.hoodie.write.partial.update.unavailable.value merge.strategy.id size.estimation.threshold
  size.estimator.average.metadata.size size.estimator.class
hoodie.release: resource.on.completion.enable
hoodie.rollback: avoid.duplicate.plan instant.backup.dir instant.backup.enabled parallelism using.markers
hoodie.schema: cache.enable on.read.enable
hoodie.sensitive: config.keys
hoodie.simple: index.input.storage.level index.parallelism index.use.caching
hoodie.skip: default.partition.validation
hoodie.spark: polaris.catalog.class sql.insert.into.operation sql.merge.into.partial.updates
  sql.optimized.writes.enable
hoodie.sql: bulk.insert.enable insert.mode
hoodie.static: overwrite.partition.paths
hoodie.storage: class layout.partitioner.class layout.type
hoodie.streamer: schemaprovider.class source.kafka.value.deserializer.class
hoodie.table: base.file.format checksum create.schema format index.defs.path
  initial.version legacy.payload.class log.file.format metadata.partitions metadata.partitions.inflight
  multiple.base.file.formats.enable name ordering.fields partial.update.mode partition.fields
  partition_extractor_class precombine.field recordkey.fields ro.file.format rt.file.format
  secondary.indexes.metadata service.manager service.manager.actions service.manager.connection.retries
  service.manager.connection.retry.delay.sec service.manager.connection.timeout.sec
  service.manager.deploy.extra.params service.manager.deploy.parallelism service.manager.deploy.queue
  service.manager.deploy.resources service.manager.deploy.username service.manager.enabled
  service.manager.execution.engine service.manager.uris services.enabled services.incremental.enabled
  timeline.timezone type version
hoodie.time: generator.max_expected_clock_skew_ms generator.type
hoodie.timeline: compaction.batch.size compaction.target.file.max.bytes history.path layout.version
  manifest.retained.versions path
hoodie.write: application.id auto.upgrade buffer.limit.bytes buffer.record.cache.limit
  buffer.record.sampling.rate can.ignore.post.commit.failures
  complex.keygen.new.encoding complex.keygen.validation.enable concat.handle.class
  concurrency.async.conflict.detector.initial_delay_ms concurrency.async.conflict.detector.period_ms
  concurrency.early.conflict.check.commit.conflict concurrency.early.conflict.detection.enable
  concurrency.early.conflict.detection.strategy concurrency.schema.conflict.resolution.enable
  empty.clean.interval.hours executor.disruptor.buffer.limit.bytes executor.disruptor.wait.strategy
  executor.type ignore.failed lock.app_id lock.client.num_retries lock.client.wait_time_ms_between_retry
  lock.conflict.resolution.strategy lock.dynamodb.partition_key lock.filesystem.path lock.heartbeat_interval_ms
  lock.hivemetastore.database lock.hivemetastore.table lock.hivemetastore.uris
  lock.max_wait_time_ms_between_retry lock.num_retries lock.provider lock.storage.heartbeat.poll.secs
  lock.storage.renew.interval.secs lock.storage.validity.timeout.secs lock.wait_time_ms_between_retry
  lock.zookeeper.base_path lock.zookeeper.connection_timeout_ms lock.zookeeper.lock_key lock.zookeeper.port
  lock.zookeeper.session_timeout_ms lock.zookeeper.url markers.type merge.handle.class merge.handle.fallback
  num.retries.on.conflict.failures partial.update.schema partial.update.unavailable.value
  record.merge.custom.implementation.classes record.merge.strategy.id record.positions rolling.metadata.keys
  rolling.metadata.timeline.lookback.commits schema status.storage.level tagged.record.storage.level
  track.event.time.watermark
hoodie.writestatus: class
"""
"""One group after the other: what its keys begin with, a colon, and what they go on with (``-`` for nothing)."""


@cache
def hudi_keys() -> frozenset[str]:
    """Return the keys."""
    found, group = set(), ""
    for word in _BY_GROUP.split():
        if word.endswith(":"):
            group = word[:-1]
        else:
            found.add(group if word == "-" else f"{group}.{word}")
    return frozenset(found)

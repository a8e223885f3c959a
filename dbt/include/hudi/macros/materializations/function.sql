{#- SQL functions of Spark 4; their text is kept by the warehouse -#}
{% macro hudi__scalar_function_create_replace_signature_sql(target_relation) %}
    {%- do adapter.hudi_check_functions(target_relation) -%}
    CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
    RETURNS {{ model.returns.data_type }}
    {{ scalar_function_volatility_sql() }}
    {%- if model.description %}
    COMMENT '{{ model.description | replace("\\", "\\\\") | replace("'", "\\'") }}'
    {%- endif %}
    RETURN
{% endmacro %}

{% macro hudi__formatted_scalar_function_args_sql() %}
    {%- for argument in model.arguments -%}
        {{ argument.name }} {{ argument.data_type }}
        {%- if argument.default_value is defined and argument.default_value is not none %} DEFAULT {{ argument.default_value }}{% endif -%}
        {{ ", " if not loop.last }}
    {%- endfor -%}
{% endmacro %}

{% macro hudi__scalar_function_body_sql() %}
    ({{ model.compiled_code }})
{% endmacro %}

{% macro hudi__scalar_function_volatility_sql() %}
    {%- set volatility = model.config.get('volatility') -%}
    {%- if volatility == 'deterministic' -%}
        DETERMINISTIC
    {%- elif volatility == 'non-deterministic' -%}
        NOT DETERMINISTIC
    {%- elif volatility is not none -%}
        {%- do unsupported_volatility_warning(volatility) -%}
    {%- endif -%}
{% endmacro %}
